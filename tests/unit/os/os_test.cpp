// The few things that Leat asks of Linux, each as the rest relies on it.
#include <fstream>

#include "leat/log/layout.hpp"
#include "leat/os/directory.hpp"
#include "leat/os/event.hpp"
#include "leat/os/file.hpp"
#include "leat/os/fork.hpp"
#include "leat/os/futex.hpp"
#include "leat/os/lock.hpp"
#include "leat/os/membarrier.hpp"
#include "testing.hpp"

namespace leat::detail {
namespace {

Fd open_file(const TestDirectory& directory, const char* name) {
  return Fd{::open((directory / name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
}

// --- Locks -------------------------------------------------------------------------------------

// A program may be started without standard streams, and print all the same.
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

TEST(Lock, BelongsToTheFileDescription) {
  const TestDirectory directory;
  const Fd mine = open_file(directory, "f");
  const Fd other = open_file(directory, "f");
  constexpr std::int64_t kByte = kLockBase + 5;
  EXPECT_TRUE(must(try_lock_byte(mine.get(), kByte)));
  EXPECT_TRUE(byte_is_locked(other.get(), kByte));
  EXPECT_FALSE(must(try_lock_byte(other.get(), kByte)));
  EXPECT_FALSE(byte_is_locked(other.get(), kByte + 1));
  EXPECT_TRUE(must(try_lock_byte(other.get(), kByte + 1)));
}

TEST(Lock, OfADescriptionEndsWithIt) {
  const TestDirectory directory;
  const Fd other = open_file(directory, "f");
  {
    const Fd mine = open_file(directory, "f");
    EXPECT_TRUE(must(try_lock_byte(mine.get(), 7)));
    { const Fd third = open_file(directory, "f"); }  // Closing another one changes nothing.
    EXPECT_TRUE(byte_is_locked(other.get(), 7));
  }
  EXPECT_FALSE(byte_is_locked(other.get(), 7));
}

TEST(Lock, OfAProcessEndsWithIt) {
  const TestDirectory directory;
  const Fd mine = open_file(directory, "f");
  Child child{[&] {
    const Fd own = open_file(directory, "f");
    if (!must(try_lock_byte(own.get(), 7))) return 1;
    ::raise(SIGSTOP);
    return 0;
  }};
  int status = 0;
  ::waitpid(child.pid(), &status, WUNTRACED);
  EXPECT_TRUE(byte_is_locked(mine.get(), 7));
  EXPECT_EQ(child.kill(SIGKILL), -SIGKILL);
  EXPECT_FALSE(byte_is_locked(mine.get(), 7));
}

TEST(Lock, WhatTheKernelDoesNotSayCountsAsLocked) { EXPECT_TRUE(byte_is_locked(-1, 7)); }

// --- Files and directories ---------------------------------------------------------------------

TEST(File, IsAllocatedWholeAndZero) {
  const TestDirectory directory;
  const Fd file = open_file(directory, "f");
  must(allocate_file(file.get(), 10'000));
  EXPECT_EQ(must(file_size(file.get())), 10'000u);
  const auto mapping = must(Mapping::map(file.get(), 10'000, true));
  for (std::size_t i = 0; i < 10'000; ++i) ASSERT_EQ(mapping.data()[i], std::byte{0});
  EXPECT_EQ(code(allocate_file(file.get(), std::size_t{1} << 50)), Errc::no_space);
  EXPECT_NE(code(allocate_file(-1, 1)), Errc::ok);
}

TEST(File, MappingsOfOneFileShareIt) {
  const TestDirectory directory;
  const Fd file = open_file(directory, "f");
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
    Fd one = open_file(directory, "f");
    number = one.get();
    Fd two = std::move(one);
    EXPECT_FALSE(one);
    EXPECT_EQ(two.get(), number);
  }
  EXPECT_EQ(::fcntl(number, F_GETFD), -1);
}

TEST(Directory, OnlyOnesOwnIsTaken) {
  const TestDirectory directory;
  EXPECT_EQ(code(open_directory_path(directory / "new", true, true)), Errc::ok);
  EXPECT_EQ(code(open_directory_path(directory / "new", true, true)), Errc::ok);
  std::filesystem::create_directory_symlink(directory / "new", directory / "link");
  EXPECT_EQ(code(open_directory_path(directory / "link", true, true)), Errc::permission);
  EXPECT_EQ(code(open_directory_path(directory / "link", true, false)), Errc::ok);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown((directory / "new").c_str(), 12345, static_cast<::gid_t>(-1)), 0);
    EXPECT_EQ(code(open_directory_path(directory / "new", true, true)), Errc::permission);
  }
}

TEST(Directory, RenamingTakesNoNameAway) {
  const TestDirectory path;
  const Fd directory = must(open_directory_path(path.path(), false, false));
  must(make_directory_at(directory.get(), "a"));
  must(make_directory_at(directory.get(), "b"));
  EXPECT_EQ(code(rename_at(directory.get(), "a", "b")), Errc::exists);
  EXPECT_EQ(code(rename_at(directory.get(), "a", "c")), Errc::ok);
  EXPECT_EQ(code(rename_at(directory.get(), "a", "d")), Errc::not_found);
}

TEST(Directory, LinksAreNotFollowed) {
  const TestDirectory path;
  const Fd directory = must(open_directory_path(path.path(), false, false));
  std::ofstream{path / "file"} << "x";
  std::filesystem::create_symlink(path / "file", path / "link");
  EXPECT_EQ(code(open_at(directory.get(), "file", O_RDONLY)), Errc::ok);
  EXPECT_NE(code(open_at(directory.get(), "link", O_RDONLY)), Errc::ok);
}

// --- Sleeping and waking -----------------------------------------------------------------------

TEST(Futex, DoesNotSleepOnAWordThatHasChanged) {
  const std::uint32_t word = 5;
  futex_wait(word, 4, Deadline::never());
  futex_wait(word, 5, Deadline::immediate());
  futex_wait(word, 5, 1ms);
}

TEST(Futex, WakesAcrossMappings) {
  const TestDirectory directory;
  const Fd file = open_file(directory, "f");
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

TEST(Membarrier, WorksWhereItCanBeRegistered) {
  if (!membarrier_register()) GTEST_SKIP() << "this kernel refuses membarrier(2)";
  EXPECT_TRUE(membarrier_all());
}

// --- fork() ------------------------------------------------------------------------------------

TEST(Fork, ChildKnowsThatItIsOne) {
  const std::uint32_t generation = fork_generation();
  const std::uint64_t token = process_token();
  Child child{[&] { return fork_generation() != generation && process_token() != token ? 0 : 1; }};
  EXPECT_EQ(child.join(), 0);
  EXPECT_EQ(fork_generation(), generation);
  EXPECT_EQ(process_token(), token);
}

TEST(Fork, ChildClosesRememberedDescriptors) {
  const TestDirectory directory;
  const Fd kept = open_file(directory, "f");
  const Fd lock = open_file(directory, "f");
  remember_lock(lock.get());
  Child child{[&] {
    return ::fcntl(lock.get(), F_GETFD) == -1 && ::fcntl(kept.get(), F_GETFD) != -1 ? 0 : 1;
  }};
  EXPECT_EQ(child.join(), 0);
  forget_lock(lock.get());
  Child later{[&] { return ::fcntl(lock.get(), F_GETFD) != -1 ? 0 : 1; }};
  EXPECT_EQ(later.join(), 0);
}

TEST(Fork, RandomNumbersDiffer) {
  EXPECT_NE(make_random(), make_random());
  EXPECT_NE(make_random(), 0u);
}

}  // namespace
}  // namespace leat::detail
