// A storm over a consumer group: kills, stops and restarts processes at random (see
// group_storm.hpp).
#include "group_storm.hpp"

#include <array>

namespace leat::testing {

std::string GroupStorm::Process::name() const {
  constexpr std::array<const char*, 3> kNames{"publisher", "member", "subscriber"};
  return kNames[static_cast<std::size_t>(kind)] + (" " + std::to_string(number));
}

GroupStorm::GroupStorm(const GroupStormOptions& options, std::uint64_t seed)
    : options_{options}, random_{seed} {
  options_.group.from = From::beginning;
  options_.group.members = options.members + 2;
  options_.group.in_flight = options.in_flight;
  auto created = Topic::create("topic", {.capacity_bytes = options.partitions * 6 * 4096ULL,
                                         .segment_bytes = 4096,
                                         .partitions = options.partitions,
                                         .participants = 16,
                                         .directory = directory_.path()});
  if (!created) {
    ADD_FAILURE() << describe(created.error());
    std::abort();
  }
  topic_.emplace(std::move(*created));
  auto group = topic_->group("group", options_.group);
  if (!group) {
    ADD_FAILURE() << describe(group.error());
    std::abort();
  }
  group_.emplace(std::move(*group));
  if (options_.subscriber) processes_.push_back({Process::Kind::subscriber, 0, {}, {}});
  for (std::uint32_t i = 0; i < options_.members; ++i)
    processes_.push_back({Process::Kind::member, i, {}, {}});
  for (std::uint32_t i = 0; i < options_.publishers; ++i)
    processes_.push_back({Process::Kind::publisher, i, {}, {}});
}

// ---- The supervisor -----------------------------------------------------------------------------

void GroupStorm::run(std::chrono::milliseconds duration) {
  for (Process& process : processes_) start(process);
  const auto until = std::chrono::steady_clock::now() + duration;
  while (std::chrono::steady_clock::now() < until && shared_->account.complaints().empty() &&
         !::testing::Test::HasFailure()) {
    ::usleep(static_cast<::useconds_t>(below(random_, 4000)));
    hurt_somebody();
    continue_stopped(false);
  }
  continue_stopped(true);
  shared_->publishers_stop = true;
  end(Process::Kind::publisher);
  end(Process::Kind::subscriber);
  shared_->members_stop = true;
  end(Process::Kind::member);
  take_the_rest();
  const GroupStormAccount& account = shared_->account;
  std::printf("%llu records taken, %llu again, %llu kills, %llu stops\n",
              static_cast<unsigned long long>(shared_->taken.load()),
              static_cast<unsigned long long>(account.again()),
              static_cast<unsigned long long>(kills_), static_cast<unsigned long long>(stops_));
  EXPECT_EQ(account.complaints(), std::vector<std::string>{});
  EXPECT_GT(account.acknowledged(), 0U);
  // Every record was acknowledged, or its member died while acknowledging it. With at_most_once,
  // only records are lost that a dead member held or was just taking.
  const bool is_once = options_.group.mode == GroupMode::at_most_once;
  if (!is_once) {
    EXPECT_EQ(account.open(), 0U) << "lost";
  } else {
    EXPECT_LE(account.untaken(), kills_ * kMaxAtOnce) << "lost";
  }
}

void GroupStorm::start(Process& process) {
  const Random random{random_()};
  process.continue_at.reset();
  process.child.emplace([this, &process, random]() -> int {
    switch (process.kind) {
      case Process::Kind::publisher: return publish(process.number, random);
      case Process::Kind::member: return work(random);
      case Process::Kind::subscriber: break;
    }
    return subscribe();
  });
}

void GroupStorm::hurt_somebody() {
  Process& process = processes_[below(random_, processes_.size())];
  const bool is_spared = process.kind == Process::Kind::subscriber;
  if (process.child->poll() == Child::State::exited) {  // It ended by itself.
    EXPECT_TRUE(process.child->succeeded()) << process.name() << " " << process.child->describe();
    if (!is_spared) start(process);
    return;
  }
  if (!is_spared && below(random_, 2) == 0) {
    process.child->signal(SIGKILL);
    process.child->wait();  // Returns at once if it is stopped.
    if (!process.child->has_ended()) process.child->go_on();
    process.child->wait();
    EXPECT_TRUE(process.child->was_killed() || process.child->succeeded())
        << process.name() << " " << process.child->describe();
    ++kills_;
    start(process);
  } else if (options_.stops && !process.continue_at) {
    process.child->signal(SIGSTOP);
    process.continue_at =
        std::chrono::steady_clock::now() + std::chrono::microseconds{below(random_, 30'000)};
    ++stops_;
  }
}

void GroupStorm::continue_stopped(bool all) {
  for (Process& process : processes_) {
    if (process.continue_at && (all || *process.continue_at < std::chrono::steady_clock::now())) {
      process.continue_at.reset();
      process.child->go_on();
    }
  }
}

// All processes of that kind end by themselves, but every second publisher
// and member is killed instead.
void GroupStorm::end(Process::Kind kind) {
  for (Process& process : processes_) {
    if (process.kind != kind) continue;
    const bool kill = kind != Process::Kind::subscriber && process.number % 2 == 0;
    if (kill) process.child->signal(SIGKILL);
    process.child->wait();
    if (process.child->poll() == Child::State::stopped) {  // An earlier SIGSTOP took effect late.
      process.child->go_on();
      process.child->wait();
    }
    EXPECT_TRUE(process.child->succeeded() || (kill && process.child->was_killed()))
        << process.name() << " " << process.child->describe();
  }
}

// At the end a new member takes what is left, and the topic still works.
void GroupStorm::take_the_rest() {
  auto member = group_->join();
  ASSERT_TRUE(member) << describe(member.error());
  auto publisher = topic_->publisher();
  ASSERT_TRUE(publisher) << describe(publisher.error());
  const auto take_some = [&] {
    auto taken = member->receive(5ms);
    for (; taken; taken = member->receive(Deadline::immediate())) {
      note(*taken, detail::now_ns());
      if (options_.group.by_key) shared_->account.let_go_of_key(*taken);
      EXPECT_TRUE(shared_->account.acknowledge(*member, *taken));
    }
    EXPECT_EQ(taken.error().code, Errc::timeout) << describe(taken.error());
  };
  const Deadline late{kPatience};
  for (int left = 60; left != 0 && !late.passed();) {
    const Mark mark = shared_->account.begin(kGroupPublishers - 1);
    const auto message = make_message(mark, 1000);
    const std::string key = GroupStormAccount::key_of(mark);
    if (publisher->publish({.key = Bytes{key}, .value = message}, Deadline::immediate())) {
      shared_->account.published(mark);
      --left;
    } else {
      shared_->account.take_back(mark);
      take_some();
    }
  }
  GroupInfo info = group_->info();
  while ((info.lag != 0 || info.in_flight != 0) && !late.passed()) {
    take_some();
    info = group_->info();
  }
  EXPECT_EQ(info.lag, 0U) << "stuck";
  EXPECT_EQ(info.in_flight, 0U) << "stuck";
}

// ---- Processes ----------------------------------------------------------------------------------

Topic GroupStorm::open() const {
  auto opened = Topic::open("topic", Deadline::immediate(), directory_.path());
  CHILD_CHECK_OK(opened);
  return std::move(*opened);
}

int GroupStorm::publish(std::uint32_t id, Random random) {
  Topic topic = open();
  std::optional<Result<Publisher>> joined;
  while (!joined || !*joined) {
    joined.emplace(topic.publisher());
    if (*joined) break;
    CHILD_CHECK(joined->error().code == Errc::too_many);  // A slot will be free soon.
    ::usleep(500);
  }
  Publisher& publisher = **joined;
  GroupStormAccount& account = shared_->account;
  while (!shared_->publishers_stop && !account.is_full(id)) {
    const Mark mark = account.begin(id);
    const auto size = kMinMessage + below(random, below(random, 8) == 0 ? 2000 : 120);
    const auto message = make_message(mark, size);
    const std::string key = GroupStormAccount::key_of(mark);
    auto offset = publisher.publish({.key = Bytes{key}, .value = message}, Deadline{20ms});
    if (offset) account.published(mark);
    CHILD_CHECK(offset || offset.error().code == Errc::timeout ||
                offset.error().code == Errc::full);
    if (below(random, 64) == 0) ::usleep(static_cast<::useconds_t>(below(random, 500)));
  }
  return 0;
}

void GroupStorm::note(const Delivery& delivery, std::int64_t call_began_ns) {
  ++shared_->taken;
  const bool is_leased = options_.group.lease != 0ns;
  shared_->account.taken(delivery, options_.group.mode,
                         is_leased ? call_began_ns : std::numeric_limits<std::int64_t>::max());
  if (options_.group.by_key) shared_->account.take_key(delivery);
}

// poll() claims records ahead, so others may take them from a member that is stopped. Each record is
// settled in the callback.
void GroupStorm::poll_some(Member& member, Random& random) {
  std::vector<Delivery> held;
  const auto polled = member.poll(1 + below(random, kMaxAtOnce), [&](const Delivery& one) {
    held.push_back(one);
    note(one, detail::now_ns());
    if (below(random, 16) == 0) ::usleep(static_cast<::useconds_t>(below(random, 5000)));
    let_go(member, held, random);
  });
  CHILD_CHECK_OK(polled);
}

// Acknowledges the held records or requeues them, oldest first.
void GroupStorm::let_go(Member& member, std::vector<Delivery>& held, Random& random) {
  for (const Delivery& one : held) {
    if (options_.group.by_key) shared_->account.let_go_of_key(one);
    const bool requeues = !options_.group.by_key && below(random, 16) == 0;
    auto done = requeues ? shared_->account.requeue(member, one, below(random, 2) == 0 ? 0ns : 1ms)
                         : shared_->account.acknowledge(member, one);
    CHILD_CHECK(done || (options_.group.lease != 0ns && done.error().code == Errc::lease_lost));
  }
  held.clear();
}

int GroupStorm::work(Random random) {
  Topic topic = open();
  auto group = topic.find_group("group");
  if (!group) {
    CHILD_CHECK(group.error().code == Errc::busy);  // The process with the lock is stopped.
    return 0;
  }
  std::optional<Result<Member>> joined;
  while (!joined || !*joined) {
    joined.emplace(group->join({.spin = std::chrono::microseconds{below(random, 2) * 20}}));
    if (*joined) break;
    CHILD_CHECK(joined->error().code == Errc::too_many);  // A seat will be free soon.
    ::usleep(500);
  }
  Member& member = **joined;
  std::vector<Delivery> held;
  for (std::uint64_t left = 20 + below(random, 400); left != 0 && !shared_->members_stop; --left) {
    const std::size_t before = held.size();
    const std::int64_t began = detail::now_ns();
    if (options_.polls && held.empty() && below(random, 2) == 0) {
      poll_some(member, random);
    } else if (below(random, 2) == 0) {
      auto one = member.receive(std::chrono::microseconds{below(random, 5000)});
      if (one) held.push_back(*one);
      if (!one && one.error().code != Errc::timeout) CHILD_CHECK_OK(one);
    } else {
      auto count = member.receive(held, 1 + below(random, kMaxAtOnce),
                                  std::chrono::microseconds{below(random, 5000)});
      if (!count && count.error().code != Errc::timeout) CHILD_CHECK_OK(count);
    }
    for (std::size_t i = before; i < held.size(); ++i) note(held[i], began);
    if (below(random, 32) == 0) ::usleep(static_cast<::useconds_t>(below(random, 5000)));
    // With a lease, records are copies that are valid only until the next call that takes records.
    const bool has_many = held.size() > kMaxAtOnce || held.size() >= options_.in_flight;
    if (options_.group.lease != 0ns || has_many || below(random, 4) != 0)
      let_go(member, held, random);
  }
  // It leaves the group while it holds the rest.
  for (const Delivery& one : held) {
    if (options_.group.by_key) shared_->account.let_go_of_key(one);
  }
  return 0;
}

int GroupStorm::subscribe() {
  Topic topic = open();
  auto joined = topic.subscriber({.from = From::beginning});
  CHILD_CHECK_OK(joined);
  std::uint64_t next = joined->offset();
  const auto on_record = [&](const Record& record) {
    CHILD_CHECK(record.offset >= next);  // There may be gaps of dead publishers.
    CHILD_CHECK(read_message(record.value));
    next = record.offset + 1;
    ++shared_->read;
  };
  while (!shared_->publishers_stop) {
    (void)joined->wait(5ms);
    CHILD_CHECK_OK(joined->poll(100, on_record));
  }
  return 0;
}

}  // namespace leat::testing
