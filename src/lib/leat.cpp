// libleat_compiled.a: everything off the per-record path, compiled once.
#include "leat/admin/impl.hpp"
#include "leat/base/result_impl.hpp"
#include "leat/group/impl.hpp"
#include "leat/log/impl.hpp"
