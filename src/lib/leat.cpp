// libleat_compiled.a: everything of the library that is not on the way of a record, compiled once.
#include "leat/base/result_impl.hpp"
#include "leat/group/impl.hpp"
#include "leat/log/impl.hpp"
