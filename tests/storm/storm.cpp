// A storm: kills, stops and restarts publishers and subscribers at random (see storm.hpp).
#include "storm.hpp"

#include <algorithm>
#include <array>

namespace leat::testing {

namespace {

std::size_t random_size(Random& random, std::size_t max) {
  switch (below(random, 8)) {
    case 0: return kMinMessage + below(random, max - kMinMessage + 1);
    case 1: return kMinMessage;
    case 2: return max;
    default: return kMinMessage + below(random, 200);
  }
}

// The key of this mark's record, if the record has one.
std::string key_of(Mark mark) { return "key " + std::to_string(mark.sequence % 17); }

}  // namespace

std::string Storm::Process::name() const {
  constexpr std::array<const char*, 3> kNames{"publisher", "gating subscriber", "lossy subscriber"};
  return kNames[static_cast<std::size_t>(kind)] + (" " + std::to_string(number)) +
         (spared ? "" : ", a victim");
}

Storm::Storm(const StormOptions& options, std::uint64_t seed) : options_{options}, random_{seed} {
  const std::uint32_t processes = options.publishers + options.gating + options.gating_victims +
                                  options.lossy + options.lossy_victims;
  auto created = Topic::create("topic", {.capacity_bytes = options.segments * 4096ULL,
                                         .segment_bytes = 4096,
                                         .policy = options.policy,
                                         .revoke_after = options.revoke_after,
                                         .evict_after = options.evict_after,
                                         .participants = processes + 1,
                                         .directory = directory_.path()});
  if (!created) {
    ADD_FAILURE() << describe(created.error());
    std::abort();
  }
  topic_.emplace(std::move(*created));
  const auto add = [&](Process::Kind kind, std::uint32_t spared, std::uint32_t victims) {
    for (std::uint32_t i = 0; i < spared + victims; ++i) {
      processes_.push_back({kind, i, i < spared, {}, {}});
    }
  };
  add(Process::Kind::gating, options.gating, options.gating_victims);
  add(Process::Kind::lossy, options.lossy, options.lossy_victims);
  add(Process::Kind::publisher, 0, options.publishers);
}

// ---- The supervisor -----------------------------------------------------------------------------

void Storm::run(std::chrono::milliseconds duration) {
  // The spared processes start first, so that they see everything from the first record on.
  for (Process& process : processes_) {
    if (process.spared) start(process);
  }
  ASSERT_TRUE(
      eventually([&] { return shared_->spared_joined == options_.gating + options_.lossy; }));
  for (Process& process : processes_) {
    if (!process.spared) start(process);
  }
  const auto until = std::chrono::steady_clock::now() + duration;
  while (std::chrono::steady_clock::now() < until && all_spared_live()) {
    ::usleep(static_cast<::useconds_t>(below(random_, 4000)));
    hurt_somebody();
    continue_stopped(false);
    if (options_.policy == Policy::grow) requeue();
  }
  end_publishers();
  if (!::testing::Test::HasFailure()) publish_in_the_calm();
  end_subscribers();
  if (options_.policy == Policy::grow && !::testing::Test::HasFailure()) {
    requeue();
    EXPECT_GT(freed_, 0U) << "the topic never grew, or kept memory that nobody needs";
  }
  std::printf("%llu records, %llu kills, %llu stops\n",
              static_cast<unsigned long long>(topic_->info().partitions.at(0).end),
              static_cast<unsigned long long>(kills_), static_cast<unsigned long long>(stops_));
}

void Storm::start(Process& process) {
  const Random random{random_()};
  process.continue_at.reset();
  process.child.emplace([this, &process, random]() -> int {
    return process.kind == Process::Kind::publisher ? publish(process.number, random)
                                                    : subscribe(process, random);
  });
}

void Storm::hurt_somebody() {
  Process& process = processes_[below(random_, processes_.size())];
  if (process.spared && !options_.stops) return;
  if (process.child->poll() == Child::State::exited) {  // It ended by itself.
    EXPECT_TRUE(process.child->succeeded()) << process.name() << " " << process.child->describe();
    if (!process.spared) start(process);
    return;
  }
  const bool kill =
      !process.spared && options_.kills && (!options_.stops || below(random_, 2) == 0);
  if (kill) {
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

void Storm::requeue() {
  auto freed = topic_->shrink();
  // A process was stopped while it added memory; that blocks nobody else.
  if (freed.error().code == Errc::busy) return;
  EXPECT_TRUE(freed) << describe(freed.error());
  if (freed) freed_ += *freed;
}

void Storm::continue_stopped(bool all) {
  for (Process& process : processes_) {
    if (process.continue_at && (all || *process.continue_at < std::chrono::steady_clock::now())) {
      process.continue_at.reset();
      process.child->go_on();
    }
  }
}

bool Storm::all_spared_live() {
  return std::all_of(processes_.begin(), processes_.end(), [](Process& process) {
    return !process.spared || !(process.child->poll(), process.child->has_ended());
  });
}

void Storm::wait_for(Process& process) {
  process.child->go_on();
  process.child->wait();
  if (process.child->poll() == Child::State::stopped) {  // An earlier SIGSTOP took effect late.
    process.child->go_on();
    process.child->wait();
  }
  EXPECT_TRUE(process.child->succeeded()) << process.name() << " " << process.child->describe();
}

// All publishers end, half of them by being killed.
void Storm::end_publishers() {
  continue_stopped(true);
  shared_->publishers_stop = true;
  for (Process& process : processes_) {
    if (process.kind != Process::Kind::publisher) continue;
    if (options_.kills && process.number % 2 == 0) {
      process.child->signal(SIGKILL);
      process.child->wait();
    } else {
      wait_for(process);
    }
  }
  shared_->victims_stop = true;
  for (Process& process : processes_) {
    if (process.kind != Process::Kind::publisher && !process.spared) wait_for(process);
  }
}

// At the end the topic must still work: publishes some more laps. A growing topic must take them
// all while nobody reads; so the records of the storm are read before, to stay below its maximum.
void Storm::publish_in_the_calm() {
  const auto all_is_read = [&] {
    const std::vector<ParticipantInfo> participants = topic_->info().participants;
    return std::all_of(participants.begin(), participants.end(), [](const ParticipantInfo& one) {
      return one.role != "subscriber" || one.lag == 0;
    });
  };
  ASSERT_TRUE(options_.policy != Policy::grow || eventually(all_is_read));
  auto publisher = topic_->publisher({.exclusive = options_.exclusive});
  ASSERT_TRUE(publisher) << describe(publisher.error());
  const auto signal_readers = [&](int signal) {
    if (options_.policy != Policy::grow) return;
    for (Process& process : processes_) {
      if (process.kind == Process::Kind::gating && process.spared) process.child->signal(signal);
    }
  };
  signal_readers(SIGSTOP);
  for (std::uint32_t left = options_.segments * 12; left != 0;) {
    const Mark mark = shared_->ledger.begin(kMaxPublishers);
    auto offset = publisher->publish(make_message(mark, 1000), kPatience);
    shared_->ledger.end(mark, offset);
    if (offset) {
      --left;
    } else if (offset.error().code != Errc::revoked) {  // This process may be delayed, too.
      ADD_FAILURE() << describe(offset.error());
      break;
    }
  }
  signal_readers(SIGCONT);
}

void Storm::end_subscribers() {
  shared_->final_end = topic_->info().partitions.at(0).end;
  for (Process& process : processes_) {
    if (process.kind != Process::Kind::publisher && process.spared) wait_for(process);
  }
}

// ---- Publishers ---------------------------------------------------------------------------------

Topic Storm::open() const {
  auto opened = Topic::open("topic", Deadline::immediate(), directory_.path());
  CHILD_CHECK_OK(opened);
  return std::move(*opened);
}

int Storm::publish(std::uint32_t id, Random random) {
  Topic topic = open();
  const StormLedger& ledger = shared_->ledger;
  while (!shared_->publishers_stop) {
    auto publisher = topic.publisher({.exclusive = options_.exclusive});
    if (!publisher) {
      // Either a slot will be free soon, or another publisher is exclusive.
      CHILD_CHECK(publisher.error().code == Errc::too_many || publisher.error().code == Errc::busy);
      ::usleep(500);
      continue;
    }
    for (std::uint64_t left = 1 + below(random, 3000); left != 0; --left) {
      if (shared_->publishers_stop || ledger.count[id] + 20 > ledger.entries[id].size()) return 0;
      switch (below(random, 8)) {
        case 0: publish_batch(*publisher, id, random); break;
        case 1: claim_one(*publisher, id, random); break;
        default: publish_one(*publisher, id, random); break;
      }
      if (below(random, 64) == 0) ::usleep(static_cast<::useconds_t>(below(random, 500)));
    }
  }
  return 0;
}

// Checks that the result is one that a call may return during a storm.
void check(const Result<std::uint64_t>& offset) {
  if (offset) return;
  const Errc code = offset.error().code;
  if (code == Errc::full || code == Errc::timeout || code == Errc::revoked) return;
  CHILD_CHECK_OK(offset);
}

void Storm::publish_one(Publisher& publisher, std::uint32_t id, Random& random) {
  const Mark mark = shared_->ledger.begin(id);
  const Deadline deadline = below(random, 4) == 0 ? Deadline::immediate() : Deadline{20ms};
  const bool keyed = below(random, 4) == 0;
  const auto message = make_message(mark, random_size(random, publisher.max_record_size() - 64));
  const std::string key = key_of(mark);
  const std::array<Header, 1> headers{{{"mark", key}}};
  auto offset =
      keyed ? publisher.publish({.key = Bytes{key}, .headers = headers, .value = message}, deadline)
            : publisher.publish(message, deadline);
  shared_->ledger.end(mark, offset);
  check(offset);
}

void Storm::publish_batch(Publisher& publisher, std::uint32_t id, Random& random) {
  auto batch = publisher.batch();
  CHILD_CHECK_OK(batch);
  std::vector<Mark> marks;
  for (std::uint64_t left = 1 + below(random, 10); left != 0; --left) {
    const Mark mark = shared_->ledger.begin(id);
    if (batch->add(make_message(mark, kMinMessage + below(random, 150)))) {
      marks.push_back(mark);
    } else {
      shared_->ledger.take_back(mark);
      break;
    }
  }
  auto first = batch->commit(Deadline{20ms});
  for (std::size_t i = 0; i < marks.size(); ++i) {
    shared_->ledger.end(marks[i], first ? Result<std::uint64_t>{*first + i} : first.error());
  }
  check(first);
}

// Writes in place, then commits in full, commits less, aborts, or drops the claim.
void Storm::claim_one(Publisher& publisher, std::uint32_t id, Random& random) {
  const Mark mark = shared_->ledger.begin(id);
  const std::size_t size = random_size(random, publisher.max_record_size());
  auto claim = publisher.try_claim(size);
  if (!claim) {
    shared_->ledger.end(mark, claim.error());
    check(claim.error());
    return;
  }
  const std::uint64_t offset = claim->offset();
  const std::size_t used = kMinMessage + below(random, size - kMinMessage + 1);
  write_message(claim->payload().first(used), mark);
  if (below(random, 16) == 0) ::usleep(200);
  switch (below(random, 4)) {
    case 0: {
      auto aborted = claim->abort();
      shared_->ledger.end(mark, aborted ? Fate::aborted : Fate::revoked, offset);
      check(aborted);
      break;
    }
    case 1:
      // A dropped claim does not report whether it was revoked; nothing arrives in either case.
      claim = Errc::ok;
      shared_->ledger.end(mark, Fate::refused, offset);
      break;
    default: {
      auto committed = claim->commit(used);
      shared_->ledger.end(mark, committed);
      check(committed);
    }
  }
}

// ---- Subscribers --------------------------------------------------------------------------------

int Storm::subscribe(const Process& process, Random random) {
  Topic topic = open();
  const bool lossy = process.kind == Process::Kind::lossy;
  std::optional<Result<Subscriber>> joined;
  do {
    joined.emplace(topic.subscriber(
        {.from = process.spared || below(random, 2) == 0 ? From::beginning : From::end,
         .gating = !lossy,
         .in_place = lossy && options_.in_place,
         .spin = std::chrono::microseconds{below(random, 2) * 20}}));
    if (!*joined) {
      CHILD_CHECK(joined->error().code == Errc::too_many);  // A slot will be free soon.
      ::usleep(500);
    }
  } while (!*joined);
  Subscriber& subscriber = **joined;
  if (process.spared) ++shared_->spared_joined;

  Trail trail{process.name()};
  bool keys_are_right = true;
  const auto on_record = [&](const Record& record) {
    trail.on_record(record);
    if (!record.has_key) return;
    const auto mark = read_message(record.value);
    keys_are_right &= mark && record.key.text() == key_of(*mark);
    for (const Header header : record.headers) {
      keys_are_right &= mark && header.name == "mark" && header.value.text() == key_of(*mark);
    }
  };
  subscriber.on_event([&](const Event& event) { trail.on_event(event); });
  const auto read_some = [&] {
    (void)subscriber.wait(std::chrono::microseconds{below(random, 5000)});
    CHILD_CHECK_OK(subscriber.poll(1 + below(random, 100), on_record));
    CHILD_CHECK(keys_are_right);
  };

  if (!process.spared) {
    for (std::uint64_t left = 200 + below(random, 2000); left != 0 && !shared_->victims_stop;
         --left) {
      read_some();
    }
  } else {
    while (shared_->final_end == 0) read_some();
    const Deadline late{kPatience};
    while (trail.next() < shared_->final_end && !late.passed()) read_some();
  }
  std::vector<std::string> complaints = trail.complaints();
  if (process.spared) {
    complaints = compare(shared_->ledger, trail);
    if (trail.next() != shared_->final_end) {
      complaints.push_back(process.name() + " is stuck at " + std::to_string(trail.next()) +
                           " of " + std::to_string(shared_->final_end));
    }
    if (trail.first() != 0) complaints.push_back(process.name() + " did not begin at 0");
    const bool may_lose = lossy || subscriber.is_lossy();
    if (!may_lose && trail.gaps(GapReason::overwritten) != 0)
      complaints.push_back(process.name() + " lost records though it is gating");
    if (options_.revoke_after == 0ns && trail.gaps(GapReason::revoked) != 0)
      complaints.push_back(process.name() + " saw a claim revoked");
  }
  for (const std::string& complaint : complaints) std::fprintf(stderr, "%s\n", complaint.c_str());
  return complaints.empty() ? 0 : 1;
}

}  // namespace leat::testing
