// All of the groups that is not in the headers above it: what libleat_compiled.a is made of, and what
// header-only programs get with leat/group.hpp.
#pragma once

#include "leat/group/group_impl.hpp"
#include "leat/group/member_impl.hpp"
