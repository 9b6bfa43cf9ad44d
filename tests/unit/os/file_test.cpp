// If this failed, a full file system could end a process with SIGBUS, or a
// program's output could overwrite a topic.
#include "leat/os/file.hpp"

#include <signal.h>
#include <sys/resource.h>

#include "leat/os/directory.hpp"
#include "leat/os/event.hpp"
#include "testing.hpp"

namespace leat::detail {
namespace {

// A program that was started without standard streams may still print, which
// must not go into a topic's file.
TEST(File, IsNeverAStandardStream) {
  TestDirectory path;
  Child child{[&] {
    for (const int fd : {0, 1, 2}) ::close(fd);
    const Fd directory = must(open_directory_path(path.path(), false, false));
    const Fd file = must(open_at(directory.get(), "file", O_RDWR | O_CREAT, 0600));
    const EventFd event;
    return directory.get() > 2 && file.get() > 2 && event.get() > 2 ? 0 : 1;
  }};
  EXPECT_EQ(child.join(), 0);
}

TEST(File, IsAllocatedWholeAndZero) {
  const TestDirectory directory;
  const Fd file = directory.open_file("f");
  must(allocate_file(file.get(), 10'000));
  EXPECT_EQ(must(file_size(file.get())), 10'000u);
  const auto mapping = must(Mapping::map(file.get(), 10'000, true));
  for (std::size_t i = 0; i < 10'000; ++i) ASSERT_EQ(mapping.data()[i], std::byte{0});
  EXPECT_EQ(code(allocate_file(file.get(), std::size_t{1} << 50)), Errc::no_space);
  EXPECT_LE(must(file_memory(file.get())), 10'000U + 4096U) << "the failed call kept memory";
  EXPECT_NE(code(allocate_file(-1, 1)), Errc::ok);
}

// A limit on the size of files (ulimit -f) causes an error and does not end the process. The
// program's own handler for that signal, and a pending one, stay as they are.
TEST(File, BeyondTheLimitOfSizesIsAnError) {
  const TestDirectory directory;
  Child child{[&] {
    const Fd file = directory.open_file("f");
    const rlimit limit{8192, 8192};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    const Result<void> tries[] = {allocate_file(file.get(), 8193), set_file_size(file.get(), 8193)};
    for (const Result<void>& one : tries) {
      if (one.error().code != Errc::no_space || one.error().system_error != EFBIG) return 2;
    }
    if (is_pending(SIGXFSZ) || !allocate_file(file.get(), 8192)) return 3;
    sigset_t only;
    ::sigemptyset(&only);
    ::sigaddset(&only, SIGXFSZ);
    ::pthread_sigmask(SIG_BLOCK, &only, nullptr);
    ::raise(SIGXFSZ);
    if (allocate_file(file.get(), 8193) || !is_pending(SIGXFSZ)) return 4;
    ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
    return 5;  // Not reached: its own pending signal ends the child.
  }};
  EXPECT_EQ(child.join(), -SIGXFSZ);
}

// On tmpfs of older kernels, any signal undoes what fallocate has done so
// far. With a timer that is faster than the allocation, it would never end.
// This test simulates such a call: it fails while signals can come.
TEST(File, IsAllocatedWhateverSignalsCome) {
  int calls = 0;
  const auto is_refused_while_signals_come = [&] {
    sigset_t blocked;
    ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    errno = EINTR;
    return ++calls < 1000 && ::sigismember(&blocked, SIGALRM) == 0 ? -1 : 0;
  };
  must(change_file(is_refused_while_signals_come));
  EXPECT_EQ(calls, 1);
}

TEST(File, MappingsOfOneFileShareIt) {
  const TestDirectory directory;
  const Fd file = directory.open_file("f");
  must(allocate_file(file.get(), kPage));
  auto one = must(Mapping::map(file.get(), kPage, true));
  const auto two = must(Mapping::map(file.get(), kPage, false));
  one.data()[5] = std::byte{7};
  EXPECT_EQ(two.data()[5], std::byte{7});
  const Mapping moved = std::move(one);
  EXPECT_FALSE(one);
  EXPECT_EQ(moved.data()[5], std::byte{7});
}

TEST(File, DescriptorIsClosedOnce) {
  const TestDirectory directory;
  int number = -1;
  {
    Fd one = directory.open_file("f");
    number = one.get();
    Fd two = std::move(one);
    EXPECT_FALSE(one);
    EXPECT_EQ(two.get(), number);
  }
  EXPECT_EQ(::fcntl(number, F_GETFD), -1);
}

}  // namespace
}  // namespace leat::detail
