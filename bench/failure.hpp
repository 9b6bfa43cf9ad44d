// How a measurement ends early: what the executables share, by the names of this folder.
#pragma once

#include "tool/failure.hpp"

namespace leat::bench {

using tool::exit_code_for;
using tool::Failure;
using tool::kExitFailed;
using tool::kExitFull;
using tool::kExitNotThere;
using tool::kExitPermission;
using tool::kExitUsage;
using tool::system_failure;

}  // namespace leat::bench
