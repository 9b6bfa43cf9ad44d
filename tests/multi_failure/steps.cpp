// A process of a multi-failure test stops itself when it reaches the label that the
// supervisor chose (see steps.hpp).
#include "steps.hpp"

#include <signal.h>

#include <cstring>

#include "leat/base/crash_point.hpp"

namespace leat::testing {
namespace {

Blow* own_blow = nullptr;
Labels* own_labels = nullptr;

}  // namespace

void Labels::note(const char* name) noexcept {
  static std::array<const char*, 256> noted;  // A cache of this process; most calls end here.
  const char*& seen = noted[(reinterpret_cast<std::uintptr_t>(name) >> 2) % noted.size()];
  if (seen == name) return;
  seen = name;
  for (std::atomic<const char*>& place : names_) {
    const char* other = nullptr;
    if (place.compare_exchange_strong(other, name) || std::strcmp(other, name) == 0) return;
  }
}

const char* Labels::pick(Random& random, std::string_view of) const noexcept {
  std::array<const char*, 96> candidates;
  std::size_t count = 0;
  for (const std::atomic<const char*>& place : names_) {
    const char* name = place;
    if (name == nullptr) break;
    if (of.empty() || family(name) == of) candidates[count++] = name;
  }
  if (count == 0 || below(random, 8) == 0) return nullptr;
  return candidates[below(random, count)];
}

std::string_view Labels::family(const char* label) noexcept {
  const std::string_view name = label == nullptr ? "" : label;
  return name.substr(0, name.find(':'));
}

void Blow::arm(const char* label, std::uint32_t passes) noexcept {
  where_ = nullptr;
  label_ = label;
  passes_ = passes;
  armed_ = 1;
}

void Blow::pass(const char* name) noexcept {
  if (armed_ == 0) return;
  const char* label = label_;
  if (label != nullptr && std::strcmp(label, name) != 0) return;
  if (passes_.fetch_sub(1) > 1) return;
  armed_ = 0;
  where_ = name;
  ::raise(SIGSTOP);
}

void obey(Blow& blow, Labels& labels) noexcept {
  own_blow = &blow;
  own_labels = &labels;
  detail::crash_point_hook = [](const char* name) {
    own_labels->note(name);
    own_blow->pass(name);
  };
}
void obey_nobody() noexcept { detail::crash_point_hook = nullptr; }

}  // namespace leat::testing
