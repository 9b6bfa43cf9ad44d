// How a measurement ends early: the failures that all executables share, under this namespace.
#pragma once

#include "tool/failure.hpp"

namespace leat::bench {

using tool::exit_code_for;
using tool::Failure;
using tool::kExitFailed;
using tool::kExitFormat;
using tool::kExitFull;
using tool::kExitNotThere;
using tool::kExitPermission;
using tool::kExitUsage;
using tool::system_failure;

// This machine, or the method itself, cannot do what was asked; the sentence says why.
class NotSupported : public Failure {
 public:
  using Failure::Failure;
};

}  // namespace leat::bench
