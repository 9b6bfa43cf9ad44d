// Chance, from a seed.
#pragma once

#include <cstdint>
#include <random>

namespace leat::testing {

using Random = std::mt19937_64;
// From 0 to limit - 1.
inline std::uint64_t below(Random& random, std::uint64_t limit) { return random() % limit; }

}  // namespace leat::testing
