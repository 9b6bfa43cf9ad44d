// The out-of-line parts of consumer groups: compiled into libleat_compiled.a, or included by
// header-only programs through leat/group.hpp.
#pragma once

#include "leat/group/group_impl.hpp"
#include "leat/group/member_impl.hpp"
