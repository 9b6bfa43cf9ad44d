// If this failed, some sequence of calls could make a group deliver a record twice at the same
// time, lose one, or show wrong counts. Random calls are compared with a naive model.
#include <map>
#include <memory>
#include <random>

#include "group/group_testing.hpp"

namespace leat {
namespace {

class ModelRun {
 public:
  ModelRun(std::uint64_t seed, const GroupOptions& options)
      : random_{seed},
        in_place_{options.lease.count() == 0},
        group_{group_of(*topic_, options)},
        publisher_{must(topic_->publisher())} {
    for (auto& seat : seats_) seat.member = std::make_unique<Member>(join(group_));
  }

  void step() {
    Seat& seat = seats_[below(kSeats)];
    switch (below(17)) {
      case 0:
      case 1: return publish();
      case 2: return publish_batch();
      case 3: return abort_claim();
      case 4:
      case 5:
      case 6: return take_some(seat, 1);
      case 7: return take_some(seat, 1 + below(20));
      case 8:
      case 9:
      case 10: return acknowledge_one(seat);
      case 11: return acknowledge_up_to_one(seat);
      case 12: return acknowledge_all(seat);
      case 13: return requeue_one(seat);
      case 14: return acknowledge_some(seat);
      case 15: return below(4) == 0 ? leave(seat) : check_counts();
      default: return check_counts();
    }
  }

  // All members leave, and a new one processes the rest.
  void finish() {
    for (Seat& seat : seats_) leave(seat);
    for (std::size_t i = 1; i < kSeats; ++i) seats_[i].member.reset();
    while (open_ != 0) {
      ASSERT_NO_FATAL_FAILURE(take_some(seats_[0], 10));
      acknowledge_all(seats_[0]);
    }
    EXPECT_EQ(code(seats_[0].member->receive(Deadline::immediate())), Errc::timeout);
    EXPECT_EQ(group_.info().in_flight, 0u);
    EXPECT_EQ(group_.info().lag, 0u);
    EXPECT_EQ(group_.info().redelivered, redelivered_);
  }

 private:
  static constexpr std::size_t kSeats = 3;
  using Place = std::pair<std::uint32_t, std::uint64_t>;  // partition, offset
  struct Known {
    std::string text;
    std::uint32_t deliveries = 0;
    bool is_held = false;
    bool is_done = false;
  };
  struct Seat {
    std::unique_ptr<Member> member;
    std::vector<Delivery> held;  // In the order in which it took them.
  };

  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  static Place place_of(const Delivery& delivery) {
    return {delivery.record.partition, delivery.record.offset};
  }

  std::string next_text() { return std::to_string(next_++) + std::string(below(600), '.'); }
  void note(std::uint32_t partition, std::uint64_t offset, std::string text) {
    known_[{partition, offset}] = {.text = std::move(text)};
    ++open_;
  }
  void publish() {
    const auto partition = static_cast<std::uint32_t>(below(2));
    std::string text = next_text();
    const auto offset = publisher_.publish({.value = text, .partition = partition});
    if (offset) note(partition, *offset, std::move(text));
  }
  void publish_batch() {
    auto batch = must(publisher_.batch());
    std::vector<std::string> texts;
    for (std::uint64_t i = 0; i <= below(6); ++i) {
      texts.push_back(std::to_string(next_++));
      must(batch.add(texts.back()));
    }
    const auto first = batch.commit(Deadline::immediate());
    if (!first) return;
    const std::uint32_t partition = batch_partition(*first, texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) note(partition, *first + i, texts[i]);
  }
  // The partition of a batch without keys: the one whose end moved.
  std::uint32_t batch_partition(std::uint64_t first, std::size_t count) {
    if (!batches_in_) {
      const TopicInfo info = topic_->info();
      batches_in_ = info.partitions[0].end == first + count && !known_.contains({0, first}) ? 0 : 1;
    }
    return *batches_in_;
  }
  void abort_claim() {
    if (auto claim = publisher_.try_claim(below(100))) must(claim->abort());
  }

  void take_some(Seat& seat, std::size_t limit) {
    std::vector<Delivery> taken;
    const auto count = seat.member->receive(taken, limit, Deadline::immediate());
    if (!count) {
      EXPECT_TRUE(code(count) == Errc::timeout || code(count) == Errc::in_flight_full);
      return;
    }
    ASSERT_EQ(*count, taken.size());
    for (const Delivery& delivery : taken) {
      const auto found = known_.find(place_of(delivery));
      ASSERT_NE(found, known_.end());
      Known& known = found->second;
      ASSERT_EQ(delivery.record.text(), known.text);
      ASSERT_FALSE(known.is_held);
      ASSERT_FALSE(known.is_done);
      ASSERT_EQ(delivery.deliveries, ++known.deliveries);
      if (known.deliveries > 1) ++redelivered_;
      known.is_held = true;
      seat.held.push_back(delivery);
    }
  }
  void done(const Delivery& delivery) {
    Known& known = known_[place_of(delivery)];
    known.is_held = false;
    known.is_done = true;
    --open_;
  }
  void acknowledge_one(Seat& seat) {
    if (seat.held.empty()) return;
    const auto at = seat.held.begin() + static_cast<std::ptrdiff_t>(below(seat.held.size()));
    if (in_place_) {
      ASSERT_EQ(at->record.text(), known_[place_of(*at)].text);  // It has not changed.
    }
    ASSERT_EQ(code(seat.member->acknowledge(*at)), Errc::ok);
    ASSERT_EQ(code(seat.member->acknowledge(*at)), Errc::not_in_flight);
    done(*at);
    seat.held.erase(at);
  }
  void acknowledge_up_to_one(Seat& seat) {
    if (seat.held.empty()) return;
    const std::size_t count = 1 + below(seat.held.size());
    ASSERT_EQ(must(seat.member->acknowledge_up_to(seat.held[count - 1])), count);
    for (std::size_t i = 0; i < count; ++i) done(seat.held[i]);
    seat.held.erase(seat.held.begin(), seat.held.begin() + static_cast<std::ptrdiff_t>(count));
  }
  // Any subset, in any order.
  void acknowledge_some(Seat& seat) {
    std::vector<Delivery> chosen;
    std::vector<Delivery> kept;
    for (const Delivery& delivery : seat.held) (below(2) == 0 ? chosen : kept).push_back(delivery);
    std::ranges::shuffle(chosen, random_);
    ASSERT_EQ(must(seat.member->acknowledge(chosen)), chosen.size());
    for (const Delivery& delivery : chosen) done(delivery);
    seat.held = std::move(kept);
  }
  void acknowledge_all(Seat& seat) {
    ASSERT_EQ(must(seat.member->acknowledge_all()), seat.held.size());
    for (const Delivery& delivery : seat.held) done(delivery);
    seat.held.clear();
  }
  void requeue_one(Seat& seat) {
    if (seat.held.empty()) return;
    const auto at = seat.held.begin() + static_cast<std::ptrdiff_t>(below(seat.held.size()));
    ASSERT_EQ(code(seat.member->requeue(*at)), Errc::ok);
    known_[place_of(*at)].is_held = false;
    seat.held.erase(at);
  }
  void leave(Seat& seat) {
    for (const Delivery& delivery : seat.held) known_[place_of(delivery)].is_held = false;
    seat.held.clear();
    seat.member.reset();
    seat.member = std::make_unique<Member>(join(group_));
  }

  void check_counts() {
    const GroupInfo info = group_.info();
    EXPECT_GE(info.lag + info.in_flight, open_);  // Gaps not passed yet count as lag.
    EXPECT_EQ(info.redelivered, redelivered_);
    EXPECT_EQ(info.members.size(), kSeats);
    std::size_t held = 0;
    for (const Seat& seat : seats_) held += seat.held.size();
    EXPECT_GE(info.in_flight, held);
  }

  std::mt19937_64 random_;
  bool in_place_;
  TestTopic topic_{{.policy = Policy::fail, .partitions = 2}};
  Group group_;
  Publisher publisher_;
  Seat seats_[kSeats];
  std::map<Place, Known> known_;
  std::optional<std::uint32_t> batches_in_;
  std::uint64_t next_ = 0;
  std::uint64_t open_ = 0;  // Records published and not acknowledged.
  std::uint64_t redelivered_ = 0;
};

void run_model(const GroupOptions& options) {
  const std::uint64_t seed = test_seed();
  for (std::uint64_t run = 0; run < 5; ++run) {
    ModelRun model{seed + run, options};
    for (int i = 0; i < 1000; ++i) {
      model.step();
      if (::testing::Test::HasFailure()) return;
    }
    model.finish();
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(GroupModel, AtLeastOnce) { run_model({}); }
TEST(GroupModel, WithFewInFlight) { run_model({.in_flight = 5}); }
TEST(GroupModel, WithALease) { run_model({.lease = 1h}); }

}  // namespace
}  // namespace leat
