// If this failed, subscribers that read nothing could fill the broker's memory past its bound.
#include "broker/data_role.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "leat/os/fd.hpp"
#include "silent_stream.hpp"
#include "support/process.hpp"

namespace leat::broker {
namespace {

constexpr std::size_t kBound = 1 << 20;
constexpr std::size_t kChunkBytes = 64 << 10;

constexpr Encoding kEncoding{
    .for_puller = [](std::string&, const Record&) {},
    .for_listener = [](std::string&, const std::string&, const Record&) {}};

class ListenerRoleTest : public ::testing::Test {
 protected:
  ListenerRoleTest() {
    config_.dir = temp_.path();
    config_.data_dir = temp_.path() + "/data";
    int both[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both), 0);
    stream_ = std::make_shared<SilentStream>(loop_, AF_UNIX, both[0]);
    client_ = leat::detail::Fd{both[1]};
  }
  ~ListenerRoleTest() override { stream_->close("the test ends"); }

  leat::testing::TemporaryDirectory temp_;
  Config config_;
  boost::asio::io_context loop_;
  Outcome<TopicStore> store_ = TopicStore::open(temp_.path() + "/state");
  std::shared_ptr<SilentStream> stream_;
  leat::detail::Fd client_;
};

// What the client has asked for, as PONGs, fills its socket before the first message comes.
TEST_F(ListenerRoleTest, TheBoundCountsWhoReadsNotEvenAnswers) {
  ASSERT_TRUE(store_);
  Backlog backlog{kBound};
  StoredTopic stored;
  stored.name = "news";
  stored.pullers = Pullers::absent;
  const auto topic = std::make_shared<BrokerTopic>(loop_, config_, *store_, backlog, stored, [] {});
  ListenerRole role{*stream_, *topic, kEncoding};
  const auto opened = role.open({});
  ASSERT_TRUE(opened) << opened.problem().sentence;
  role.listen(true);
  stream_->out().append(4 << 20, 'p');
  stream_->flush();
  ASSERT_NE(stream_->unsent(), 0U);
  for (std::size_t i = 0; i < 4 * kBound / kChunkBytes; ++i) {
    const auto chunk = std::make_shared<Chunk>();
    chunk->bytes.assign(kChunkBytes, 'm');
    chunk->records = 1;
    backlog.count(*chunk);
    static_cast<Listener&>(role).take(chunk);
    backlog.trim();
    EXPECT_LE(backlog.bytes(), kBound + 2 * kChunkBytes);
  }
  EXPECT_GT(role.stats().lost, 0U);
  // Whose chunks are all dropped has no oldest one.
  Chunk large[2];
  for (Chunk& one : large) {
    one.bytes.resize(2 * kBound);
    backlog.count(one);
    backlog.trim();
  }
  EXPECT_EQ(backlog.bytes(), large[0].counted + large[1].counted);
  EXPECT_TRUE(stream_->is_open());
  role.leave();
}

}  // namespace
}  // namespace leat::broker
