// Members of the group that is never moved. Everything they take and
// acknowledge is noted in the account.
#include <vector>

#include "leat/group.hpp"
#include "world.hpp"

namespace leat::testing {
namespace {

class Worker {
 public:
  Worker(Actor& self, Member& member)
      : self_{self},
        member_{member},
        account_{self.world.shared->account},
        options_{self.world.options.group} {}

  // Returns whether it took anything.
  bool take_some() {
    const std::uint64_t before = taken_;
    const Deadline deadline{std::chrono::microseconds{self_.below(5000)}};
    switch (self_.below(4)) {
      case 0: poll(); break;
      case 1: {
        const std::int64_t began = detail::now_ns();
        auto one = member_.receive(deadline);
        expect_sane(one.error(), "take");
        if (one) note(held_.emplace_back(*one), began);
        break;
      }
      default: {
        const std::size_t first = held_.size();
        const std::int64_t began = detail::now_ns();
        auto count = member_.receive(held_, 1 + self_.below(kMaxAtOnce), deadline);
        expect_sane(count.error(), "take some");
        for (std::size_t i = first; i < held_.size(); ++i) note(held_[i], began);
      }
    }
    return taken_ != before;
  }

  // Acknowledges its records or requeues them. With a lease that must happen before the next call
  // that takes records, because they are copies that such a call replaces.
  void let_go(bool of_all) {
    const bool must = of_all || options_.lease != 0ns || held_.size() > kMaxAtOnce;
    if (!must && self_.below(4) == 0) return;
    for (const Delivery& one : held_) {
      const bool is_leased = options_.lease != 0ns;
      const bool requeues = self_.below(16) == 0;
      if (options_.by_key && requeues && !is_leased) account_.comes_back(one);
      let_go_of_key(one);
      const auto done = requeues ? account_.requeue(member_, one, self_.below(2) == 0 ? 0ns : 1ms)
                                 : account_.acknowledge(member_, one);
      if (is_leased && done.error().code == Errc::lease_lost) continue;
      expect(done.error(), {Errc::ok}, requeues ? "requeue" : "acknowledge");
    }
    held_.clear();
  }
  // Forgets its records; the member leaves without acknowledging them.
  void leave() {
    for (const Delivery& one : held_) let_go_of_key(one);
    held_.clear();
  }

 private:
  void let_go_of_key(const Delivery& one) {
    if (options_.by_key && options_.lease == 0ns) account_.let_go_of_key(one);
  }

  static void expect_sane(const Error& error, const char* call) {
    expect(error, {Errc::ok, Errc::timeout, Errc::in_flight_full}, call);
  }

  void note(const Delivery& delivery, std::int64_t call_began_ns) {
    ++taken_;
    ++self_.world.shared->taken;
    if (options_.lease == 0ns) call_began_ns = std::numeric_limits<std::int64_t>::max();
    account_.taken(delivery, options_.mode, call_began_ns);
    if (options_.by_key) account_.take_key(delivery, call_began_ns);
  }

  void poll() {
    if (options_.by_key && !held_.empty()) return;  // It may hold the key itself.
    const std::int64_t began = detail::now_ns();
    auto count = member_.poll(1 + self_.below(kMaxAtOnce), [&](const Delivery& one) {
      note(one, began);
      account_.acknowledge_later(one);
      let_go_of_key(one);
    });
    expect_sane(count.error(), "poll");
  }

  Actor& self_;
  Member& member_;
  MultiFailureAccount& account_;
  GroupOptions options_;
  std::vector<Delivery> held_;
  std::uint64_t taken_ = 0;
};

Group find_group(const World& world, const Topic& topic) {
  auto group = topic.find_group(World::kGroup);
  while (!group) {
    expect(group.error(), {Errc::busy}, "find group");  // The process with the lock is stopped.
    if (world.shared->victims_stop) ::_exit(0);
    group = topic.find_group(World::kGroup);
  }
  return std::move(*group);
}

}  // namespace

int work(Actor& self) {
  const Topic topic = self.world.open();
  const Group group = find_group(self.world, topic);
  while (!self.must_end()) {
    const std::chrono::microseconds spin{self.below(2) * 20};
    auto member = join_at_last([&] { return group.join({.spin = spin}); });
    Worker worker{self, *member};
    for (std::uint64_t left = 20 + self.below(400); left != 0 && !self.must_end(); --left) {
      (void)worker.take_some();
      self.pause(32, 5000);
      worker.let_go(false);
      if (self.below(500) == 0) fork_a_child(self);
    }
    worker.leave();
  }
  return 0;
}

int work_steadily(Actor& self) {
  const Topic topic = self.world.open();
  const Group group = find_group(self.world, topic);
  auto member = join_at_last([&] { return group.join(); });
  Worker worker{self, *member};
  ++self.world.shared->joined;
  while (!self.world.shared->all_stop) {
    if (worker.take_some()) self.goes_on();
    worker.let_go(true);
  }
  // All remaining records must be taken, by this member or another.
  const Deadline late{kPatience};
  GroupInfo info = group.info();
  while ((info.lag != 0 || info.in_flight != 0) && !late.passed()) {
    (void)worker.take_some();
    worker.let_go(true);
    info = group.info();
  }
  if (info.lag == 0 && info.in_flight == 0) return 0;
  std::fprintf(stderr, "the group is stuck: lag %llu, in flight %llu\n",
               static_cast<unsigned long long>(info.lag),
               static_cast<unsigned long long>(info.in_flight));
  return 1;
}

}  // namespace leat::testing
