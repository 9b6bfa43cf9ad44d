// Starts the processes of a multi-failure test, strikes some of them, and checks the account.
#include "supervisor.hpp"

#include <poll.h>
#include <algorithm>
#include <array>
#include <cstdlib>

namespace leat::testing {

std::string Supervisor::Process::name() const {
  constexpr std::array<const char*, kKinds> kNames{"steady publisher", "reader",    "worker",
                                                   "janitor",          "publisher", "subscriber",
                                                   "member",           "mover",     "renewer"};
  return kNames[static_cast<std::size_t>(kind)] + (" " + std::to_string(number));
}

Supervisor::Supervisor(const MultiFailureOptions& options, std::uint64_t seed)
    : world_{.options = options}, random_{seed}, seed_{seed} {
  world_.options.group.from = From::beginning;
  world_.options.group.members = options.members + 3;
  world_.options.group.in_flight = 24;
  create();
  add(Kind::reader, 1);
  if (options.members != 0) add(Kind::worker, 1);
  if (options.movers != 0) add(Kind::janitor, 1);
  add(Kind::steady_publisher, 1);
  add(Kind::publisher, options.publishers);
  add(Kind::subscriber, options.subscribers);
  add(Kind::member, options.members);
  add(Kind::mover, options.movers);
  add(Kind::renewer, options.renewers);
  if (::pipe2(forks_, O_CLOEXEC) != 0) std::abort();
}

Supervisor::~Supervisor() {
  for (const int fd : forks_) {
    if (fd >= 0) ::close(fd);
  }
}

void Supervisor::create() {
  const MultiFailureOptions& options = world_.options;
  auto topic = Topic::create(World::kTopic, {.capacity_bytes = options.segments * 4096ULL,
                                             .segment_bytes = 4096,
                                             .policy = options.policy,
                                             .partitions = options.partitions,
                                             .revoke_after = options.revoke_after,
                                             .participants = 24,
                                             .directory = world_.directory.path()});
  if (!topic) {
    ADD_FAILURE() << describe(topic.error());
    std::abort();
  }
  topic_.emplace(std::move(*topic));
  if (options.members == 0) return;
  auto group = topic_->group(World::kGroup, options.group);
  if (!group) {
    ADD_FAILURE() << describe(group.error());
    std::abort();
  }
  group_.emplace(std::move(*group));
}

// A publisher's number is its place in the ledger; the steady publisher has the first one.
void Supervisor::add(Kind kind, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t number = kind == Kind::publisher ? i + 1 : i;
    processes_.push_back({kind, number, &world_.shared->lives.at(processes_.size()), {}});
  }
}

void Supervisor::start(Process& process) {
  const Random random{random_()};
  process.life->blow.disarm();
  process.is_killed = false;
  process.child.emplace([this, &process, random]() -> int {
    ::close(forks_[0]);
    if (is_spared(process.kind)) ::close(forks_[1]);
    Actor actor{world_, process.kind, process.number, *process.life, random};
    return actor.run();
  });
}

void Supervisor::start_missing() {
  for (Process& process : processes_) {
    if (is_spared(process.kind)) continue;
    let_go_on(process);
    if (!process.child->has_ended() && !process.is_killed) continue;
    wait_for_end(process);
    EXPECT_TRUE(process.child->was_killed() || process.child->succeeded())
        << process.name() << " " << process.child->describe() << " after: " << history();
    start(process);
  }
}

void Supervisor::wait_for_end(Process& process) {
  const Deadline late{2 * kPatience};
  while (!process.child->has_ended() && !late.passed()) {
    let_go_on(process);
    ::usleep(100);
  }
}

// Between two strikes no process may be stopped, not even one that stopped itself late.
void Supervisor::let_go_on(Process& process) {
  while (process.child->poll() == Child::State::stopped) process.child->go_on();
}

bool Supervisor::is_well() {
  if (::testing::Test::HasFailure()) return false;
  for (Process& process : processes_) {
    if (process.child->poll() != Child::State::exited) continue;
    if (!is_spared(process.kind) && process.child->succeeded()) continue;
    ADD_FAILURE() << process.name() << " " << process.child->describe() << " after: " << history();
    return false;
  }
  for (const std::string& complaint : world_.shared->account.complaints())
    ADD_FAILURE() << complaint << " after: " << history();
  return !::testing::Test::HasFailure();
}

void Supervisor::run(std::chrono::milliseconds duration, MultiFailureTotals& totals) {
  // The spared processes start first, one after the other, the publisher last: so they see everything from
  // the first record on.
  std::uint32_t spared = 0;
  for (Process& process : processes_) {
    if (!is_spared(process.kind)) continue;
    ++spared;
    start(process);
    ASSERT_TRUE(eventually([&] { return world_.shared->joined == spared; }));
  }
  for (Process& process : processes_) {
    if (!is_spared(process.kind)) start(process);
  }
  const Deadline until{duration};
  while (!until.passed() && is_well()) {
    ::usleep(static_cast<::useconds_t>(below(random_, 5000)));
    strike();
    start_missing();
  }
  end();
  if (::testing::Test::HasFailure()) keep_files();
  for (const PartitionInfo& partition : topic_->info().partitions) totals.records += partition.end;
  totals.taken += world_.shared->taken;
  totals.strikes += totals_.strikes;
  totals.kills += totals_.kills;
  totals.stops += totals_.stops;
  totals.at_steps += totals_.at_steps;
  totals.late += totals_.late;
  totals.longest_ns = std::max(totals.longest_ns, totals_.longest_ns);
}

void Supervisor::end() {
  end_victims();
  world_.shared->publishing_stops = true;
  wait_for_spared(Kind::steady_publisher);
  wait_for_forks();
  if (::testing::Test::HasFailure()) return;
  publish_in_the_calm();
  for (std::uint32_t i = 0; i < world_.options.partitions; ++i)
    world_.shared->end[i] = topic_->info().partitions.at(i).end;
  world_.shared->all_stop = true;
  for (const Kind kind : {Kind::janitor, Kind::worker, Kind::reader}) wait_for_spared(kind);
  check_account();
}

// Half of the victims are killed, the others end by themselves.
void Supervisor::end_victims() {
  world_.shared->victims_stop = true;
  for (Process& process : processes_) {
    if (is_spared(process.kind)) continue;
    const bool kill = process.number % 2 == 1;
    if (kill) process.child->signal(SIGKILL);
    wait_for_end(process);
    EXPECT_TRUE(process.child->succeeded() || process.child->was_killed())
        << process.name() << " " << process.child->describe() << " after: " << history();
  }
}

// Waits for children of victims, which may outlive them.
void Supervisor::wait_for_forks() {
  ::close(std::exchange(forks_[1], -1));
  pollfd end{.fd = forks_[0], .events = POLLIN, .revents = 0};
  const auto patience = std::chrono::milliseconds{kPatience}.count();
  EXPECT_EQ(::poll(&end, 1, static_cast<int>(patience)), 1) << "a child of a victim does not end";
}

// At the end the topic must still work: publishes some more laps.
void Supervisor::publish_in_the_calm() {
  MultiFailureShared& shared = *world_.shared;
  auto publisher = topic_->publisher();
  ASSERT_TRUE(publisher) << describe(publisher.error());
  for (std::uint32_t i = 0; i < world_.options.segments * 12; ++i) {
    const std::uint32_t partition = i % world_.options.partitions;
    (void)shared.account.begin(number_of(kForkPublisher, partition));
    const Mark mark = shared.ledger.begin(number_of(kForkPublisher, partition));
    const auto message = make_message(mark, 1000);
    const std::string key = MultiFailureAccount::key_of(mark);
    auto offset = publisher->publish({.key = Bytes{key}, .value = message, .partition = partition},
                                     kPatience);
    shared.ledger.end(mark, offset);
    ASSERT_TRUE(offset) << describe(offset.error()) << " after: " << history();
    shared.account.published(mark);
  }
}

void Supervisor::wait_for_spared(Kind kind) {
  for (Process& process : processes_) {
    if (process.kind != kind) continue;
    wait_for_end(process);
    EXPECT_TRUE(process.child->succeeded())
        << process.name() << " " << process.child->describe() << " after: " << history();
  }
}

void Supervisor::check_account() {
  const MultiFailureAccount& account = world_.shared->account;
  EXPECT_EQ(account.complaints(), std::vector<std::string>{});
  if (world_.options.members == 0) return;
  // Every record was acknowledged, or its member died while acknowledging it. With at_most_once,
  // only records are lost that a dead member held or was just taking.
  if (world_.options.group.mode != GroupMode::at_most_once) {
    EXPECT_EQ(account.open(), 0U) << "lost";
  } else {
    EXPECT_LE(account.untaken(), (totals_.kills + world_.options.members) * kMaxAtOnce) << "lost";
  }
}

std::string Supervisor::history() const {
  std::string text = "LEAT_SEED=" + std::to_string(seed_);
  for (const std::string& strike : history_) text += "\n  " + strike;
  return text;
}

void Supervisor::keep_files() const {
  const char* keep = std::getenv("LEAT_KEEP");
  if (keep == nullptr) return;
  std::error_code ignored;
  std::filesystem::copy(world_.directory.path(), std::string{keep} + "/" + std::to_string(seed_),
                        std::filesystem::copy_options::recursive, ignored);
}

}  // namespace leat::testing
