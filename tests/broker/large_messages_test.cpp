// If these failed, producers that stop in the middle of large messages could fill the broker's memory, or those that go on would
// be cut off for them.
#include "broker/net/large_messages.hpp"

#include <gtest/gtest.h>

#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>
#include <deque>
#include <vector>

#include "broker/net/connections.hpp"
#include "leat/deadline.hpp"

namespace leat::broker {
namespace {

constexpr std::chrono::milliseconds kPatience{8};
constexpr std::size_t kLarge = 1 << 20;

class FakeHolder final : public LargeMessages::Holder, public LargeMessages::Waiter {
 public:
  FakeHolder(LargeMessages& large, std::size_t bytes, std::optional<Origin> origin = {})
      : large_{large}, bytes_{bytes}, origin_{origin} {
    on_room();
  }
  ~FakeHolder() override {
    large_.release(*this);
    large_.leave(*this);
  }

  void on_room() override {
    if (wants) has = large_.take(*this, *this, bytes_);
  }
  std::optional<Origin> origin() const override { return origin_; }
  std::uint64_t moved_bytes() const override {
    ++looks;
    return moved_ += moves ? kLarge : step;
  }
  bool waits_for_client() override { return !is_kept_waiting; }
  void cut_off() override {
    ++cut_offs;
    looks_before_cut_off = looks;
  }

  bool wants = true;
  bool has = false;
  bool moves = false;
  bool is_kept_waiting = false;  // By the broker.
  std::uint64_t step = 0;        // What it moves from look to look otherwise.
  mutable int looks = 0;         // How often it was asked.
  int cut_offs = 0;
  int looks_before_cut_off = 0;

 private:
  LargeMessages& large_;
  std::size_t bytes_;
  std::optional<Origin> origin_;
  mutable std::uint64_t moved_ = 0;
};

class LargeMessagesTest : public ::testing::Test {
 protected:
  // Until `condition`, and then for as long as patience takes twice.
  template <class Condition>
  void run_until(const Condition& condition) {
    for (const Deadline deadline{std::chrono::seconds{20}}; !condition();) {
      ASSERT_FALSE(deadline.passed());
      run_for(std::chrono::milliseconds{1});
    }
  }
  void run_for(std::chrono::milliseconds time) {
    loop_.restart();
    loop_.run_for(time);
  }

  boost::asio::io_context loop_;
  LargeMessages large_{loop_, 4 * kLarge, kPatience};
};

TEST_F(LargeMessagesTest, TheFirstInLineTakesWhatIsReleased) {
  std::deque<FakeHolder> all;
  for (int i = 0; i < 7; ++i) all.emplace_back(large_, kLarge).moves = true;
  EXPECT_TRUE(all[3].has);
  EXPECT_FALSE(all[4].has);
  EXPECT_EQ(large_.bytes(), 4 * kLarge);
  large_.release(all[1]);
  FakeHolder late{large_, kLarge};
  EXPECT_FALSE(late.has) << "others wait in line";
  run_until([&] { return all[4].has; });
  EXPECT_FALSE(all[5].has);
  all[5].wants = false;
  large_.release(all[2]);
  run_until([&] { return all[6].has; });
  EXPECT_FALSE(all[5].has);
  EXPECT_EQ(large_.bytes(), 4 * kLarge);
}

TEST_F(LargeMessagesTest, OneMayHoldMoreThanTheBound) {
  FakeHolder small{large_, kLarge};
  FakeHolder huge{large_, 5 * kLarge};
  EXPECT_FALSE(huge.has);
  large_.release(small);
  run_until([&] { return huge.has; });
}

TEST_F(LargeMessagesTest, ThoseThatStoppedAreCutOffForOthersTheOldestFirst) {
  std::deque<FakeHolder> all;
  for (int i = 0; i < 4; ++i) all.emplace_back(large_, kLarge);
  all[0].moves = true;
  all[1].is_kept_waiting = true;
  run_for(4 * kPatience);
  for (const FakeHolder& each : all) EXPECT_EQ(each.cut_offs, 0) << "nobody waits";
  FakeHolder waiting{large_, kLarge};
  run_until([&] { return all[2].cut_offs != 0; });
  run_for(4 * kPatience);
  EXPECT_EQ(all[2].cut_offs, 1);
  EXPECT_EQ(all[0].cut_offs + all[1].cut_offs + all[3].cut_offs, 0);
  EXPECT_FALSE(waiting.has);
  large_.release(all[2]);
  run_until([&] { return waiting.has; });
}

// A look may come right after somebody took, and says little about it.
TEST_F(LargeMessagesTest, HoldersHaveTheirPatienceFromTheFirstLookOn) {
  std::deque<FakeHolder> all;
  for (int i = 0; i < 4; ++i) all.emplace_back(large_, kLarge).moves = true;
  FakeHolder next{large_, kLarge};
  FakeHolder waiting{large_, kLarge};
  run_until([&] { return all[0].looks > 2; });
  large_.release(all[0]);
  run_until([&] { return next.cut_offs != 0; });
  EXPECT_EQ(next.looks_before_cut_off, 1 + 1 + 4);
}

// Else one that moves just enough could keep the room for minutes.
TEST_F(LargeMessagesTest, WhoHoldsMoreMustMoveMore) {
  constexpr std::size_t kHuge = 4 * kLarge;
  FakeHolder fast{large_, kHuge / 2};
  fast.step = kHuge / 2 / 16 / 4;
  FakeHolder slow{large_, kHuge / 2};
  slow.step = kHuge / 2 / 16 / 4 - 1;
  FakeHolder waiting{large_, kLarge};
  run_until([&] { return slow.cut_offs != 0; });
  run_for(2 * kPatience);
  EXPECT_EQ(fast.cut_offs, 0);
}

TEST_F(LargeMessagesTest, OriginsTakeTurns) {
  const auto origin = [](const char* address) {
    return Origin{boost::asio::ip::make_address(address)};
  };
  std::deque<FakeHolder> holding;
  for (int i = 0; i < 4; ++i) holding.emplace_back(large_, kLarge).moves = true;
  std::deque<FakeHolder> crowd;
  for (int i = 0; i < 10; ++i) crowd.emplace_back(large_, kLarge, origin("10.0.0.1")).moves = true;
  FakeHolder lonely{large_, kLarge, origin("10.0.0.2")};
  lonely.moves = true;
  large_.release(holding[0]);
  large_.release(holding[1]);
  run_until([&] { return lonely.has; });
  EXPECT_TRUE(crowd[0].has);
  EXPECT_FALSE(crowd[1].has);
}

TEST_F(LargeMessagesTest, WhoLeavesTheLineLetsTheNextOneIn) {
  std::deque<FakeHolder> holding;
  for (int i = 0; i < 3; ++i) holding.emplace_back(large_, kLarge).moves = true;
  FakeHolder huge{large_, 2 * kLarge};
  FakeHolder next{large_, kLarge};
  EXPECT_FALSE(next.has);
  large_.leave(huge);
  run_until([&] { return next.has; });
}

// --- Connections ----------------------------------------------------------------------------------

using Socket = boost::asio::local::stream_protocol::socket;

// Takes messages of one size.
class Receiving final : public Stream {
 public:
  Receiving(Accepted accepted, std::size_t size, int& messages)
      : Stream{std::move(accepted)}, size_{size}, messages_{messages} {}

 private:
  std::size_t on_bytes(Bytes& bytes) override {
    for (; bytes.size() >= size_; bytes = bytes.subspan(size_)) ++messages_;
    return bytes.empty() ? 1 : size_;
  }
  void on_closed(const std::string&) override {}

  const std::size_t size_;
  int& messages_;

 public:
  using Stream::received_bytes;
};

class UnfinishedMessages : public LargeMessagesTest {
 protected:
  ~UnfinishedMessages() override { connections_.close_all("the end"); }

  Socket& connect(std::size_t message_size, Connections::Kind kind = Connections::Kind::data,
                  const Peer& peer = {}) {
    Socket& client = clients_.emplace_back(loop_);
    Socket own{loop_};
    boost::asio::local::connect_pair(client, own);
    client.non_blocking(true);
    streams_.push_back(
        std::make_shared<Receiving>(Accepted{std::move(own), peer}, message_size, messages_));
    connections_.start(streams_.back(), kind);
    return client;
  }
  void send(Socket& client, std::size_t bytes) {
    const std::string text(bytes, 'x');
    for (std::size_t sent = 0; sent < bytes;) {
      boost::system::error_code error;
      sent += client.write_some(boost::asio::buffer(text.data() + sent, bytes - sent), error);
      if (error && error != boost::asio::error::would_block) return;
      run_for(std::chrono::milliseconds{error ? 1 : 0});
      ASSERT_LE(large_.bytes(), 4 * kLarge);
    }
  }
  void await(int messages) {
    run_until([&] { return messages_ == messages; });
  }

  Connections connections_{{.in_all = 1000, .per_address = 1000},
                           {.messages = &large_, .commands = &large_}};
  std::deque<Socket> clients_;
  std::vector<std::shared_ptr<Receiving>> streams_;
  int messages_ = 0;
};

TEST_F(UnfinishedMessages, OfClientsThatStoppedLeaveRoomForOthers) {
  for (int i = 0; i < 20; ++i) send(connect(kLarge), i < 4 ? kLarge / 2 : 100'000);
  EXPECT_EQ(large_.bytes(), 4 * kLarge);
  send(connect(1000), 1000);
  await(1);
  const std::size_t last = streams_.size();
  send(connect(kLarge), 2 * kLarge);
  await(3);
  EXPECT_TRUE(streams_[last]->is_open());
}

// What waits for memory is read soon, whether or not its client is still there.
TEST_F(UnfinishedMessages, OfAClientThatHasHungUpAreReadWhenThereIsRoom) {
  FakeHolder all{large_, 4 * kLarge};
  all.moves = true;
  Socket& client = connect(kLarge / 8);
  send(client, kLarge / 8);
  client.close();
  run_for(std::chrono::milliseconds{1});
  EXPECT_FALSE(streams_.back()->is_abandoned());
  large_.release(all);
  await(1);
}

// Else strangers could keep 64 KiB in each of their connections.
TEST_F(UnfinishedMessages, OfCommandsWaitUnread) {
  constexpr std::size_t kCommand = 64 * 1024;
  FakeHolder all{large_, 4 * kLarge};
  all.moves = true;
  Socket& client = connect(kCommand, Connections::Kind::commands);
  send(client, kCommand);
  run_for(std::chrono::milliseconds{1});
  EXPECT_LE(streams_.back()->received_bytes(), Connections::kSmallCommand);
  // Most commands are small, and wait for nobody.
  send(connect(Connections::kSmallCommand, Connections::Kind::commands),
       Connections::kSmallCommand);
  await(1);
  large_.release(all);
  await(2);
  EXPECT_EQ(large_.bytes(), 0U);
}

// Else strangers could keep out the broker's owner.
TEST_F(UnfinishedMessages, OfCommandsAtTheUnixSocketWaitForNobody) {
  FakeHolder all{large_, 4 * kLarge};
  all.moves = true;
  Peer owner;
  owner.is_unix = true;
  send(connect(64 * 1024, Connections::Kind::commands, owner), 64 * 1024);
  await(1);
}

TEST_F(UnfinishedMessages, StayWhileNobodyNeedsTheirRoom) {
  for (int i = 0; i < 4; ++i) send(connect(kLarge), kLarge / 2);
  run_for(4 * kPatience);
  for (Socket& client : clients_) send(client, kLarge - kLarge / 2);
  await(4);
  EXPECT_EQ(large_.bytes(), 0U);
}

}  // namespace
}  // namespace leat::broker
