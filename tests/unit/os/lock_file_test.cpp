// If this failed, a forked child could keep its dead parent's locks, so that
// the parent counts as alive.
#include "leat/os/lock_file.hpp"

#include <atomic>

#include "testing.hpp"

namespace leat::detail {
namespace {

class LockFileTest : public ::testing::Test {
 protected:
  LockFile open() const { return must(LockFile::open(folder_.get(), "f", O_RDWR | O_CREAT, 0600)); }
  const TestDirectory directory_;
  const Fd folder_ = must(open_directory_path(directory_.path(), false, false));
};

TEST_F(LockFileTest, IsClosedInAChild) {
  const Fd kept = directory_.open_file("f");
  LockFile file = open();
  LockFile moved = std::move(file);
  const int number = moved.get();
  Child child{[&] {
    if (::fcntl(number, F_GETFD) != -1 || ::fcntl(kept.get(), F_GETFD) == -1) return 1;
    // The next file has the same number; closing the inherited one must not affect it.
    const Fd other = directory_.open_file("g");
    if (other.get() != number || !moved.is_inherited()) return 2;
    moved.close();
    return ::fcntl(number, F_GETFD) != -1 ? 0 : 3;
  }};
  EXPECT_EQ(child.join(), 0);
  moved.close();
  EXPECT_EQ(::fcntl(number, F_GETFD), -1);
  // By now the number belongs to another file, which a child must keep.
  const Fd other = directory_.open_file("g");
  ASSERT_EQ(other.get(), number);
  Child later{[&] { return ::fcntl(number, F_GETFD) != -1 ? 0 : 1; }};
  EXPECT_EQ(later.join(), 0);
}

TEST_F(LockFileTest, LocksUntilItIsClosed) {
  LockFile one = open();
  LockFile other = open();
  EXPECT_TRUE(must(one.try_lock(7)));
  EXPECT_FALSE(must(other.try_lock(7)));
  one.close();
  EXPECT_TRUE(must(other.try_lock(7)));
}

TEST_F(LockFileTest, OneThatIsNotThereLeavesNothingBehind) {
  EXPECT_EQ(code(LockFile::open(folder_.get(), "none", O_RDWR)), Errc::not_found);
  const std::size_t before = fork_state().locks.size();
  const LockFile file = open();
  EXPECT_EQ(fork_state().locks.size(), before + 1);
}

// A thread opens, locks and closes a file all the time while another one
// forks. No child may have the file.
TEST_F(LockFileTest, NoForkComesBetween) {
  std::atomic<bool> done = false;
  std::jthread locker{[&] {
    for (std::int64_t i = 0; !done; ++i) {
      LockFile file = open();
      (void)must(file.try_lock(i % 3));
    }
  }};
  const Fd mine = directory_.open_file("f");
  for (int i = 0; i < 300; ++i) {
    // Looks at the names of all files that it has open.
    const auto finds_none = [&] {
      for (int fd = 3; fd < 64; ++fd) {
        if (fd == mine.get() || ::fcntl(fd, F_GETFD) == -1) continue;
        char name[256] = {};
        // No allocation: another thread may have been allocating when this one forked.
        char link[32];
        std::snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        if (::readlink(link, name, sizeof(name) - 1) < 0) continue;
        if (std::string_view{name}.ends_with("/f")) return 1;
      }
      return 0;
    };
    Child child{finds_none, ::fork};
    ASSERT_EQ(child.join(), 0);
  }
  done = true;
}

}  // namespace
}  // namespace leat::detail
