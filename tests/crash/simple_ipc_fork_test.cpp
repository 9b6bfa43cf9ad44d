// If this failed, a child that a program forks could hang in its first call of CSimpleIPC, because another
// thread of the program was inside a call at that moment.
//
// A thread is stopped where an instance has one of its mutexes locked; then the process forks.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <optional>
#include <thread>

#include "leat/compat/simple_ipc.hpp"
#include "support/moment.hpp"
#include "support/process.hpp"

namespace leat::testing {
namespace {

class SimpleIpcFork : public ::testing::Test {
 protected:
  SimpleIpcFork() {
    ::setenv("LEAT_DIR", directory_.path().c_str(), 1);
    ipc_.emplace();
    EXPECT_TRUE(ipc_->createConnectionPoint(sizeof(int), 1)) << CSimpleIPC::lastErrorText();
  }
  ~SimpleIpcFork() override {
    ipc_.reset();
    ::unsetenv("LEAT_DIR");
  }

  static bool was_refused() { return CSimpleIPC::lastError() == Errc::forked; }

  // The inherited instance refuses all calls; one of the child's own works.
  int use_in_child() {
    detail::crash_point_hook = nullptr;
    int number = 1;
    CHILD_CHECK(!ipc_->write(&number, sizeof(number), 0) && was_refused());
    CHILD_CHECK(!ipc_->read(&number, sizeof(number), 0) && was_refused());
    {
      BlockWriteDescriptor to_write;
      CHILD_CHECK(ipc_->acquireBlock(to_write, 0) == nullptr && was_refused());
      CHILD_CHECK(to_write.status == compat::BlockStatus::failed);
      BlockReadDescriptor to_read;
      CHILD_CHECK(ipc_->acquireBlock(to_read, 0) == nullptr && was_refused());
    }
    CHILD_CHECK(!ipc_->setMaxExpansionsCount(1) && was_refused());
    CHILD_CHECK(ipc_->settings().block_count == 0 && was_refused());
    ipc_->requestStopCommunications();
    ipc_->requestResumeCommunications();

    CSimpleIPC mine;
    CHILD_CHECK(mine.attachToConnectionPoint(ipc_->getConnectionPoint()));
    (void)mine.read(&number, sizeof(number), 0);  // Makes room if a block is there.
    CHILD_CHECK(mine.write(&number, sizeof(number), 1000));
    CHILD_CHECK(mine.read(&number, sizeof(number), 1000));
    mine.requestStopCommunications();
    mine.requestResumeCommunications();
    ipc_.reset();
    return 0;
  }

  // Forks while another thread is in `call`, at `step`. `when_there`: what comes before the fork.
  void fork_during(
      const char* step, const std::function<void()>& call,
      const std::function<void()>& when_there = [] {}) {
    std::atomic<bool> is_there = false;
    std::atomic<bool> may_go_on = false;
    const Moment moment{step, [&] {
                          if (is_there.exchange(true)) return;
                          is_there.notify_one();
                          may_go_on.wait(false);
                        }};
    std::jthread other{call};
    is_there.wait(false);
    when_there();
    Child child{[&] { return use_in_child(); }};
    child.wait();
    EXPECT_TRUE(child.succeeded()) << child.describe();
    may_go_on = true;
    may_go_on.notify_one();
  }

  TemporaryDirectory directory_;
  std::optional<CSimpleIPC> ipc_;
};

TEST_F(SimpleIpcFork, WhileAWriterIsMade) {
  fork_during("join:reserved", [&] {
    const int number = 7;
    EXPECT_TRUE(ipc_->write(&number, sizeof(number)));
  });
}

TEST_F(SimpleIpcFork, WhileAReaderIsMade) {
  fork_during("seat:taken", [&] {
    int number = 0;
    EXPECT_FALSE(ipc_->read(&number, sizeof(number), 0));
  });
}

TEST_F(SimpleIpcFork, WhileSettingsAreRead) {
  // So many changes that the instance has missed some.
  CSimpleIPC changing;
  ASSERT_TRUE(changing.attachToConnectionPoint(ipc_->getConnectionPoint()));
  for (int i = 0; i < 400; ++i) ASSERT_TRUE(changing.setMaxExpansionsCount(1));
  fork_during("skip:looked", [&] { EXPECT_EQ(ipc_->settings().block_count, 1U); });
}

TEST_F(SimpleIpcFork, WhileAResumeWaitsForAWriter) {
  const int number = 7;
  while (ipc_->write(&number, sizeof(number), 0)) continue;
  std::jthread resuming;
  fork_during(
      "space:sleeping",
      [&] { EXPECT_TRUE(ipc_->write(&number, sizeof(number))); },  // The child makes room.
      [&] {
        ipc_->requestStopCommunications();
        resuming = std::jthread{[&] { ipc_->requestResumeCommunications(); }};
        std::this_thread::sleep_for(20ms);
      });
}

}  // namespace
}  // namespace leat::testing
