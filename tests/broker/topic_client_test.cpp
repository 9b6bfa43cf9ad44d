// If these failed, consumers that read nothing could fill the broker's memory past its bound.
#include "broker/topic/topic_client.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "leat/deadline.hpp"
#include "leat/os/fd.hpp"
#include "silent_stream.hpp"
#include "support/process.hpp"

namespace leat::broker {
namespace {

constexpr std::size_t kBound = 1 << 20;
constexpr std::size_t kChunkBytes = 64 << 10;

constexpr Encoding kEncoding{
    .for_consumer = [](std::string& out, const Record& record) { out.append(record.text()); },
    .for_subscriber = [](std::string&, const std::string&, const Record&) {}};

class SubscribingClientTest : public ::testing::Test {
 protected:
  SubscribingClientTest() {
    config_.dir = temp_.path();
    config_.data_dir = temp_.path() + "/data";
    int both[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both), 0);
    stream_ = std::make_shared<SilentStream>(loop_, AF_UNIX, both[0]);
    client_ = leat::detail::Fd{both[1]};
  }
  ~SubscribingClientTest() override { stream_->close("the test ends"); }

  leat::testing::TemporaryDirectory temp_;
  Config config_;
  boost::asio::io_context loop_;
  Outcome<TopicStore> store_ = TopicStore::open(temp_.path() + "/state");
  std::shared_ptr<SilentStream> stream_;
  leat::detail::Fd client_;
};

// What the client has asked for, as PONGs, fills its socket before the first message comes.
TEST_F(SubscribingClientTest, TheBoundCountsWhoReadsNotEvenAnswers) {
  ASSERT_TRUE(store_);
  Backlog backlog{kBound};
  StoredTopic stored;
  stored.name = "news";
  stored.consumers = Consumers::absent;
  BlockingWorker worker{loop_};
  LargeMessages unsent{loop_};
  const TopicsShare share{loop_, worker, worker, worker, config_, *store_, backlog, unsent, [] {}};
  const auto topic = std::make_shared<BrokerTopic>(share, stored);
  SubscribingClient client{*stream_, *topic, kEncoding};
  bool is_open = false;
  client.open({}, [&](const Outcome<void>& opened) {
    ASSERT_TRUE(opened) << opened.problem().sentence;
    is_open = true;
  });
  for (const Deadline deadline{std::chrono::seconds{20}}; !is_open;) {
    ASSERT_FALSE(deadline.passed());
    loop_.restart();
    loop_.run_for(std::chrono::milliseconds{1});
  }
  client.listen(true);
  stream_->out().append(4 << 20, 'p');
  stream_->flush();
  ASSERT_NE(stream_->unsent(), 0U);
  for (std::size_t i = 0; i < 4 * kBound / kChunkBytes; ++i) {
    const auto chunk = std::make_shared<Chunk>();
    chunk->bytes.assign(kChunkBytes, 'm');
    chunk->records = 1;
    backlog.count(*chunk);
    static_cast<SubscriberSink&>(client).take(chunk);
    backlog.trim();
    EXPECT_LE(backlog.bytes(), kBound + 2 * kChunkBytes);
  }
  EXPECT_GT(client.stats().lost, 0U);
  // Whose chunks are all dropped has no oldest one.
  Chunk large[2];
  for (Chunk& one : large) {
    one.bytes.resize(2 * kBound);
    backlog.count(one);
    backlog.trim();
  }
  EXPECT_EQ(backlog.bytes(), large[0].counted + large[1].counted);
  EXPECT_TRUE(stream_->is_open());
  client.leave();
}

// --- Pullers ----------------------------------------------------------------------------------------

constexpr std::size_t kLargeRecord = 1 << 20;

class PullerConnection final : public Stream {
 public:
  PullerConnection(boost::asio::io_context& loop, int fd, const TopicPtr& topic)
      : Stream{Accepted{Socket{loop, boost::asio::generic::stream_protocol{AF_UNIX, 0}, fd}, {}}},
        role_{*this, *topic, TopicUse::consume_own(), kEncoding, false} {}

  void open() {
    role_.open({}, [this](const Outcome<void>& opened) {
      ASSERT_TRUE(opened) << opened.problem().sentence;
      is_let_in_ = role_.begin();
    });
  }
  bool is_let_in() const noexcept { return is_let_in_; }

 private:
  std::size_t on_bytes(Bytes& bytes) override {
    bytes = {};
    return 1;
  }
  void on_sent() override { role_.on_sent(); }
  void on_closed(const std::string&) override { role_.leave(); }

  ConsumingClient role_;
  bool is_let_in_ = false;
};

TEST(StalledPullers, HoldNoMoreThanTheBoundAndLeaveTheirMessagesToOthers) {
  constexpr std::size_t kRecords = 20;
  const leat::testing::TemporaryDirectory temp;
  Config config;
  config.dir = temp.path() + "/dir";
  config.data_dir = temp.path() + "/data";
  for (const std::string& each : {config.dir, config.data_dir})
    std::filesystem::create_directories(each);
  boost::asio::io_context loop;
  Outcome<TopicStore> store = TopicStore::open(temp.path() + "/state");
  ASSERT_TRUE(store);
  Backlog backlog;
  BlockingWorker worker{loop};
  LargeMessages unsent{loop, 4 * kLargeRecord, std::chrono::milliseconds{40}};
  const auto stored = store->add({.name = "work", .is_durable = true, .group = "work"});
  ASSERT_TRUE(stored) << stored.problem().sentence;
  const TopicsShare share{loop, worker, worker, worker, config, *store, backlog, unsent, [] {}};
  const auto topic = std::make_shared<BrokerTopic>(share, *stored);
  std::deque<std::pair<std::shared_ptr<PullerConnection>, leat::detail::Fd>> all;
  const auto run = [&](auto condition) {
    for (const Deadline deadline{std::chrono::seconds{20}}; !condition();) {
      ASSERT_FALSE(deadline.passed());
      loop.restart();
      loop.run_for(std::chrono::milliseconds{1});
      ASSERT_LE(unsent.bytes(), 4 * kLargeRecord);
    }
  };
  const auto connect = [&] {
    int both[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both), 0);
    all.emplace_back(std::make_shared<PullerConnection>(loop, both[0], topic), both[1]);
    all.back().first->open();
    run([&] { return all.back().first->is_let_in(); });
  };
  for (int i = 0; i < 10; ++i) connect();
  auto log = Topic::open("work", Deadline::immediate(), config.dir, {}, config.data_dir);
  ASSERT_TRUE(log) << describe(log.error());
  auto publisher = log->publisher();
  ASSERT_TRUE(publisher);
  for (std::size_t i = 0; i < kRecords; ++i)
    ASSERT_TRUE(publisher->publish(std::string(kLargeRecord, static_cast<char>('a' + i))));
  run([&] { return unsent.bytes() == 4 * kLargeRecord; });
  connect();
  std::map<char, std::size_t> received;
  std::string bytes(kLargeRecord, '\0');
  const auto run_until_received = [&](std::size_t records) {
    run([&] {
      const ::ssize_t count =
          ::recv(all.back().second.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      for (const char each : bytes.substr(0, count < 0 ? 0 : static_cast<std::size_t>(count)))
        ++received[each];
      return std::ranges::count(received, kLargeRecord, [](const auto& one) {
               return one.second;
             }) == static_cast<std::ptrdiff_t>(records);
    });
  };
  run_until_received(kRecords -
                     3);  // The others are in the hands of those that need not make room.
  EXPECT_EQ(std::ranges::count_if(all, [](const auto& each) { return each.first->is_open(); }), 4);
  for (std::size_t i = 0; i + 1 < all.size(); ++i) all[i].first->close("the test ends");
  run_until_received(kRecords);
  for (const auto& each : all) each.first->close("the test ends");
}

}  // namespace
}  // namespace leat::broker
