// If this failed, a process could sleep on although another one has woken it.
#include "leat/os/futex.hpp"

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstddef>

#include "leat/os/file.hpp"
#include "support/process.hpp"
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

#ifdef SYS_futex_waitv
// From here on, the kernel refuses futex_waitv to this process, as container systems do that do not know the call.
bool refuse_futex_waitv(int error) {
  ::sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(::seccomp_data, nr)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex_waitv, 0, 1),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error)),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const ::sock_fprog program{4, code};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// Older Docker and systemd answer EPERM: waits used to return at once, and their callers used a whole CPU.
TEST(Futex, SleepsWhereAFilterRefusesFutexWaitv) {
  for (const int error : {ENOSYS, EPERM, EACCES, EINVAL}) {
    testing::Child child{[&]() -> int {
      const bool had = has_futex_waitv();  // Found out before the filter comes.
      CHILD_CHECK(refuse_futex_waitv(error));
      CHILD_CHECK(error == EINVAL || !probe_futex_waitv());
      const std::uint32_t words[2] = {};
      const FutexWait waits[2] = {{&words[0], 0}, {&words[1], 0}};
      const Deadline deadline{50ms};
      int sleeps = 0;
      for (; !deadline.passed(); ++sleeps) CHILD_CHECK(futex_wait_any(waits, deadline) == -1);
      CHILD_CHECK(sleeps <= 60);  // 1 ms each
      CHILD_CHECK(error == EINVAL ? has_futex_waitv() == had : !has_futex_waitv());
      return 0;
    }};
    child.wait();
    EXPECT_TRUE(child.succeeded()) << "error " << error << ": " << child.describe();
  }
}
#endif

}  // namespace
}  // namespace leat::detail
