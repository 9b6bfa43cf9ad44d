// Facts about the machine and the build, which a figure needs to be judged.
//
//     Json facts = machine_facts();  // {"cpu": "AMD EPYC", …}
#pragma once

#include "output.hpp"

namespace leat::bench {

// "unknown" for what the system does not say.
Json machine_facts();

}  // namespace leat::bench
