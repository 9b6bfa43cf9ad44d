// If this failed, the descriptor of `wait_fd` would never become readable.
#include "leat/os/event.hpp"

#include "testing.hpp"

namespace leat::detail {
namespace {

TEST(Event, IsReadableFromSignalToDrain) {
  const EventFd event;
  ASSERT_TRUE(event);
  const auto readable = [&] {
    pollfd entry{event.get(), POLLIN, 0};
    return ::poll(&entry, 1, 0) == 1;
  };
  EXPECT_FALSE(readable());
  event.signal();
  event.signal();
  EXPECT_TRUE(readable());
  event.drain();
  EXPECT_FALSE(readable());
  event.drain();
}

}  // namespace
}  // namespace leat::detail
