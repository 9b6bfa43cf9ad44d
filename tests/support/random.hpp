// Random numbers from a seed, so that a failure can be repeated.
#pragma once

#include <cstdint>
#include <random>

namespace leat::testing {

using Random = std::mt19937_64;
// A random number from 0 to limit - 1.
inline std::uint64_t below(Random& random, std::uint64_t limit) { return random() % limit; }

}  // namespace leat::testing
