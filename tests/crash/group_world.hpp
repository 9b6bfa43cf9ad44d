// A consumer group on a topic of a few 4 KiB segments, a victim that dies or stops at a labelled
// step, and the survivors, which must continue: a publisher and a member in the thread of the test,
// and members that join later.
//
//     GroupWorld world{{.group = {.mode = GroupMode::at_most_once}}};
//     Child victim = world.start([&]() -> int {…}, {"take:moved", 1, SIGKILL});
//     victim.wait();
//     world.expect_progress();
#pragma once

#include "support/account.hpp"
#include "world.hpp"

namespace leat::testing {

using Account = AccountOf<1, 3000>;

inline constexpr std::uint32_t kInFlight = 8;

struct GroupWorldOptions {
  GroupOptions group = {};
  std::uint32_t partitions = 1;
};

class GroupWorld {
 public:
  explicit GroupWorld(const GroupWorldOptions& options = {}) : options_{options} {
    auto created = Topic::create("topic", {.capacity_bytes = 6 * World::kSegment,
                                           .segment_bytes = World::kSegment,
                                           .partitions = options.partitions,
                                           .participants = 12,
                                           .directory = directory_.path()});
    if (!created) {
      ADD_FAILURE() << "create: " << describe(created.error());
      std::abort();
    }
    topic_.emplace(std::move(*created));
    options_.group.from = From::beginning;
    options_.group.members = 6;
    options_.group.in_flight = kInFlight;
    auto group = topic_->group("group", options_.group);
    auto publisher = topic_->publisher();
    if (!group || !publisher) {
      ADD_FAILURE() << "group: " << describe(group.error());
      std::abort();
    }
    group_.emplace(std::move(*group));
    publisher_.emplace(std::move(*publisher));
    member_.emplace(join());
  }

  Topic& topic() noexcept { return *topic_; }
  Group& group() noexcept { return *group_; }
  Account& account() noexcept { return *account_; }
  Publisher& publisher() noexcept { return *publisher_; }
  Member& member() noexcept { return *member_; }
  GroupMode mode() const noexcept { return options_.group.mode; }
  const GroupWorldOptions& options() const noexcept { return options_; }
  const std::string& directory() const noexcept { return directory_.path(); }

  // A member that takes records and does nothing with them.
  Member& idler() {
    if (!idler_) idler_.emplace(join());
    return *idler_;
  }
  Member join() {
    auto joined = group_->join({.spin = 0ns});
    if (!joined) {
      ADD_FAILURE() << "join: " << describe(joined.error());
      std::abort();
    }
    return std::move(*joined);
  }

  // ---- In children ------------------------------------------------------------------------------

  Child start(const std::function<int()>& body, const Blow& blow) {
    return Child{[&] {
      arm(blow);
      return body();
    }};
  }
  // Opens the child's own handle; it must not use what it inherited.
  Group open() const {
    auto opened = Topic::open("topic", Deadline::immediate(), directory_.path());
    CHILD_CHECK_OK(opened);
    auto group = opened->find_group("group");
    CHILD_CHECK_OK(group);
    return std::move(*group);
  }
  Member open_member() const {
    auto joined = open().join({.spin = 0ns});
    CHILD_CHECK_OK(joined);
    return std::move(*joined);
  }

  // ---- In any process ---------------------------------------------------------------------------

  // False if there is no room.
  bool publish(std::size_t size) {
    const Mark mark = account_->begin(0);
    const auto message = make_message(mark, size);
    const std::string key = Account::key_of(mark);
    NewRecord record{.value = message};
    if (options_.group.by_key) record.key = Bytes{key};
    auto offset = publisher_->publish(record, Deadline::immediate());
    if (!offset) {
      EXPECT_EQ(offset.error().code, Errc::full) << describe(offset.error());
      account_->take_back(mark);
      return false;
    }
    account_->published(mark);
    return true;
  }
  // One batch, with a record of each of these sizes.
  bool publish_batch(const std::vector<std::size_t>& sizes) {
    auto batch = publisher_->batch();
    EXPECT_TRUE(batch) << describe(batch.error());
    std::vector<Mark> marks;
    for (const std::size_t size : sizes) {
      marks.push_back(account_->begin(0));
      EXPECT_TRUE(batch->add(make_message(marks.back(), size)));
    }
    const bool done{batch->commit(Deadline::immediate())};
    if (!done) account_->take_back(marks.front());
    if (done) {
      for (const Mark mark : marks) account_->published(mark);
    }
    return done;
  }

  void note_taken(const Delivery& delivery) {
    account_->taken(delivery, mode());
    if (options_.group.by_key) account_->take_key(delivery);
  }
  Result<void> acknowledge(Member& member, const Delivery& delivery) {
    if (options_.group.by_key) account_->let_go_of_key(delivery);
    return account_->acknowledge(member, delivery);
  }
  Result<void> requeue(Member& member, const Delivery& delivery,
                       std::chrono::nanoseconds delay = 0ns) {
    if (options_.group.by_key) account_->let_go_of_key(delivery);
    return account_->requeue(member, delivery, delay);
  }

  // ---- The survivors ------------------------------------------------------------------------------

  // The member takes one record, and then does nothing.
  void take_and_keep() {
    auto taken = member_->receive(Deadline::immediate());
    ASSERT_TRUE(taken) << describe(taken.error());
    note_taken(*taken);
    kept_.push_back(*taken);
  }
  void let_go_of_kept() {
    for (const Delivery& one : std::exchange(kept_, {})) {
      const auto done = acknowledge(*member_, one);
      EXPECT_TRUE(done || (done.error().code == Errc::lease_lost && options_.group.lease != 0ns))
          << describe(done.error());
    }
  }

  // Takes and acknowledges all available records; waits up to 3 ms for the
  // first. False if there is none.
  bool take_some(Member& member) {
    bool any = false;
    for (int i = 0; i < 20; ++i) {
      auto taken = member.receive(i == 0 ? Deadline{3ms} : Deadline::immediate());
      if (!taken) {
        EXPECT_EQ(taken.error().code, Errc::timeout) << describe(taken.error());
        return any;
      }
      note_taken(*taken);
      const auto done = acknowledge(member, *taken);
      EXPECT_TRUE(done || done.error().code == Errc::lease_lost) << describe(done.error());
      any = true;
    }
    return any;
  }
  // Publishes `count` records of various sizes while the member takes them;
  // false if that gets stuck.
  bool publish_and_take(Member& member, int count) {
    const Deadline late{kPatience};
    for (int done = 0; done < count;) {
      if (publish(kMinMessage + (account_->begun(0) * 379U) % 1900)) {
        ++done;
      } else {
        if (late.passed()) return false;
        take_some(member);
      }
    }
    return true;
  }
  // Takes records until none are left; false if that gets stuck.
  bool take_to_end(Member& member) {
    const Deadline late{kPatience};
    const auto is_settled = [&] {
      const GroupInfo info = group_->info();
      return info.lag == 0 && info.in_flight == 0;
    };
    while (!is_settled()) {
      if (late.passed()) return false;
      take_some(member);
    }
    // With at_most_once, a dead member may have taken the records that are still open.
    EXPECT_TRUE(mode() == GroupMode::at_most_once || account_->open() == 0) << state();
    return true;
  }

  // While the victim is stopped, the others get everything that it was not
  // handed, except for up to `may_keep` records.
  void expect_others_take(std::uint32_t may_keep) {
    let_go_of_kept();
    for (int i = 0; i < 3; ++i) publish(kMinMessage);  // May fail, if the victim holds the room.
    const Deadline leases_over{2 * options_.group.lease};
    const Deadline late{kPatience};
    while ((account_->untaken() > may_keep && !late.passed()) || !leases_over.passed())
      take_some(*member_);
    EXPECT_LE(account_->untaken(), may_keep) << state();
    EXPECT_EQ(account_->complaints(), std::vector<std::string>{});
  }

  // The others continue whatever happened to the victim: they publish and take several laps of all
  // segments, new members join and leave, and every record is accounted for.
  void expect_progress() {
    let_go_of_kept();
    EXPECT_TRUE(publish_and_take(*member_, 40)) << "the publisher is stuck; " << state();
    EXPECT_TRUE(take_to_end(*member_)) << "the member is stuck; " << state();
    {
      Member newcomer = join();
      EXPECT_TRUE(publish_and_take(newcomer, 5)) << "the publisher is stuck; " << state();
      EXPECT_TRUE(take_to_end(newcomer)) << "the newcomer is stuck; " << state();
    }
    EXPECT_FALSE(take_some(*member_));
    EXPECT_EQ(account_->complaints(), std::vector<std::string>{});
    if (options_.partitions == 1) {
      EXPECT_EQ(group_->released(), topic_->info().partitions.at(0).end);
    }
  }
  std::string state() const {
    const GroupInfo info = group_->info();
    std::string text = "lag " + std::to_string(info.lag) + ", in flight " +
                       std::to_string(info.in_flight) + ", open " +
                       std::to_string(account_->open()) + " of " +
                       std::to_string(account_->begun(0)) + ", members";
    for (const MemberInfo& member : info.members) {
      text += " " + std::to_string(member.pid) + ":" + std::to_string(member.in_flight);
    }
    return text;
  }

 private:
  TemporaryDirectory directory_;
  GroupWorldOptions options_;
  Shared<Account> account_;
  std::optional<Topic> topic_;
  std::optional<Group> group_;
  std::optional<Publisher> publisher_;
  std::optional<Member> member_;
  std::optional<Member> idler_;
  std::vector<Delivery> kept_;  // Held by member_.
};

}  // namespace leat::testing
