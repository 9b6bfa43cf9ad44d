// How a measurement of `leat bench ipc` goes.
#pragma once

namespace leat::bench {

enum class Pattern {
  pingpong,  // A message and its answer, the whole payload both ways.
  oneway,    // As fast as it goes, in one direction.
  rate,      // In one direction, each message at a time of its own.
};

enum class Variant {
  spinning,  // Both sides look again and again: no sleep, and a whole CPU each.
  blocking,  // Both sleep in the kernel until there is something.
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
