// If these failed, what vanished clients were sent would stay with them for hours, or bytes would be sent in another order.
#include "broker/net/stream.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <string>

#include "silent_stream.hpp"

namespace leat::broker {
namespace {

class StreamTest : public ::testing::Test {
 protected:
  ~StreamTest() override {
    if (stream_) stream_->close("the test ends");
    ::close(client_);
  }

  // `own` is what the broker has.
  void start(int family, int own, int client) {
    client_ = client;
    stream_ = std::make_shared<SilentStream>(loop_, family, own);
  }
  std::string received() {
    std::string bytes(1 << 20, '\0');
    const ::ssize_t count = ::recv(client_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    return bytes.substr(0, count < 0 ? 0 : static_cast<std::size_t>(count));
  }

  boost::asio::io_context loop_;
  std::shared_ptr<SilentStream> stream_;
  int client_ = -1;
};

TEST_F(StreamTest, AClientThatVanishedIsNoticedInMinutes) {
  start(AF_INET, ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), -1);
  const auto option = [&](int level, int name) {
    int value = 0;
    ::socklen_t size = sizeof value;
    EXPECT_EQ(::getsockopt(stream_->descriptor(), level, name, &value, &size), 0);
    return value;
  };
  EXPECT_EQ(option(SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_LE(option(IPPROTO_TCP, TCP_KEEPIDLE), 60);
  EXPECT_LE(option(IPPROTO_TCP, TCP_KEEPINTVL) * option(IPPROTO_TCP, TCP_KEEPCNT), 60);
  EXPECT_GT(option(IPPROTO_TCP, TCP_USER_TIMEOUT), 60'000);
  EXPECT_LE(option(IPPROTO_TCP, TCP_USER_TIMEOUT), 120'000);
}

TEST_F(StreamTest, WhatIsLentGoesBeforeWhatIsAppendedAfterwards) {
  int both[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both), 0);
  start(AF_UNIX, both[0], both[1]);
  const auto large = std::make_shared<const std::string>(1 << 20, 'l');
  stream_->lend(large);
  EXPECT_EQ(stream_->unsent(), large->size());
  EXPECT_EQ(stream_->ended_at(), large->size());
  stream_->flush();
  EXPECT_GT(stream_->unsent(), 0U) << "the kernel does not take all of it";
  EXPECT_FALSE(stream_->is_idle());
  EXPECT_EQ(large.use_count(), 2) << "it is not copied";
  stream_->out() += "end";
  EXPECT_EQ(stream_->ended_at(), large->size() + 3);
  std::string all;
  while (all.size() < large->size() + 3) {
    all += received();
    loop_.run_one_for(std::chrono::milliseconds{10});
  }
  EXPECT_EQ(all, *large + "end");
  EXPECT_EQ(stream_->sent_bytes(), large->size() + 3);
  EXPECT_EQ(large.use_count(), 1);
  EXPECT_TRUE(stream_->is_idle());
  stream_->lend(std::make_shared<const std::string>());
  stream_->out() += "nothing before";
  stream_->flush();
  EXPECT_EQ(received(), "nothing before");
}

}  // namespace
}  // namespace leat::broker
