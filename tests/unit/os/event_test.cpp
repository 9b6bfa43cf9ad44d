// If this failed, the descriptor of `wait_fd` would never become readable, or waiting for a topic
// to be created would not end.
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

TEST(Event, DirectoryWatchSeesANewName) {
  const TestDirectory directory;
  DirectoryWatch watch{directory.path()};
  watch.wait(Deadline::immediate());
  watch.wait(2ms);
  std::jthread maker{[&] {
    std::this_thread::sleep_for(10ms);
    std::filesystem::create_directory(directory / "new");
  }};
  const Deadline deadline{30s};
  watch.wait(deadline);
  EXPECT_FALSE(deadline.passed());
}

}  // namespace
}  // namespace leat::detail
