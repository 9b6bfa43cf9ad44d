// Facts about the machine and the build, without which a figure cannot be judged.
#pragma once

#include "report.hpp"

namespace leat::bench {

// "unknown" where the system does not tell.
Json machine_facts();

}  // namespace leat::bench
