// The patterns and variants of a measurement, by the names they have in the JSON.
#pragma once

namespace leat::bench {

enum class Pattern {
  pingpong,  // A message and its answer, the whole payload both ways.
  oneway,    // As fast as possible, in one direction.
  rate,      // In one direction; each message is due at a fixed time.
};

enum class Variant {
  spinning,  // Both sides poll and never sleep: a whole CPU each.
  blocking,  // Both sides sleep in the kernel until there is something to do.
};

// As in the JSON.
inline const char* name_of(Pattern pattern) noexcept {
  switch (pattern) {
    case Pattern::pingpong: return "pingpong";
    case Pattern::oneway: return "oneway";
    case Pattern::rate: break;
  }
  return "rate";
}
inline const char* name_of(Variant variant) noexcept {
  return variant == Variant::spinning ? "spinning" : "blocking";
}

}  // namespace leat::bench
