// The definitions of leat/admin.hpp: compiled into libleat_compiled.a, or included by header-only programs through
// leat/admin.hpp.
#pragma once

#include "leat/admin/files_impl.hpp"
#include "leat/admin/memory_impl.hpp"
#include "leat/admin/places_impl.hpp"
#include "leat/admin/reader_impl.hpp"
