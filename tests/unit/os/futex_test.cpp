// If this failed, a process could sleep on although another one has woken it.
#include "leat/os/futex.hpp"

#include "leat/os/file.hpp"
#include "testing.hpp"

namespace leat::detail {
namespace {

TEST(Futex, DoesNotSleepOnAWordThatHasChanged) {
  const std::uint32_t word = 5;
  futex_wait(word, 4, Deadline::never());
  futex_wait(word, 5, Deadline::immediate());
  futex_wait(word, 5, 1ms);
}

TEST(Futex, WakesAcrossMappings) {
  const TestDirectory directory;
  const Fd file = directory.open_file("f");
  must(allocate_file(file.get(), kPage));
  const auto one = must(Mapping::map(file.get(), kPage, true));
  const auto two = must(Mapping::map(file.get(), kPage, true));
  auto& word = *reinterpret_cast<std::uint32_t*>(one.data());
  auto& same = *reinterpret_cast<std::uint32_t*>(two.data());
  std::jthread waker{[&] {
    std::this_thread::sleep_for(10ms);
    store_release<Edge::sleeping>(same, 1);
    futex_wake_all(same);
  }};
  while (load_acquire<Edge::sleeping>(word) == 0) futex_wait(word, 0, Deadline::never());
}

TEST(Futex, AnyOfSeveralWakes) {
  std::uint32_t words[3] = {};
  const FutexWait waits[3] = {{&words[0], 0}, {&words[1], 0}, {&words[2], 0}};
  futex_wait_any(waits, 2ms);
  futex_wait_any({}, Deadline::never());
  std::jthread waker{[&] {
    std::this_thread::sleep_for(10ms);
    store_release<Edge::sleeping>(words[2], 1);
    futex_wake_all(words[2]);
  }};
  while (load_acquire<Edge::sleeping>(words[2]) == 0) futex_wait_any(waits, Deadline::never());
}

}  // namespace
}  // namespace leat::detail
