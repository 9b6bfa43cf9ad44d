// The publishers of a multi-failure test: single records, batches and claims in place.
// Most are small, with sizes that repeat.
#include "world.hpp"

namespace leat::testing {
namespace {

// Notes the result of publishing in the ledger and in the account.
void note(World& world, Mark mark, const Result<std::uint64_t>& offset) {
  world.shared->ledger.end(mark, offset);
  if (offset) world.shared->account.published(mark);
}

class Writer {
 public:
  Writer(Actor& self, Publisher& publisher, std::uint32_t id)
      : self_{self}, publisher_{publisher}, id_{id} {}

  void publish_something() {
    switch (self_.below(8)) {
      case 0:
      case 1:
      case 2: return publish_batch();
      case 3: return claim_one();
      default: (void)publish_one(self_.below(4) == 0 ? Deadline::immediate() : Deadline{20ms});
    }
  }

  bool publish_one(const Deadline& deadline) {
    const std::uint32_t partition = any_partition();
    const Mark mark = begin(partition);
    const auto message = make_message(mark, size());
    const std::string key = MultiFailureAccount::key_of(mark);
    auto offset =
        publisher_.publish({.key = Bytes{key}, .value = message, .partition = partition}, deadline);
    end(mark, offset);
    return offset.has_value();
  }

  bool is_full() const {
    for (std::uint32_t i = 0; i < self_.world.options.partitions; ++i) {
      const std::uint32_t number = number_of(id_, i);
      if (self_.world.shared->ledger.count[number] + 20 > kRecords) return true;
      if (self_.world.shared->account.begun(number) + 20 > kRecords) return true;
    }
    return false;
  }

 private:
  std::uint32_t any_partition() {
    return static_cast<std::uint32_t>(self_.below(self_.world.options.partitions));
  }
  // Mostly a few sizes that repeat, so that claims announced from the same
  // word are hard to tell apart.
  std::size_t size() {
    if (self_.below(8) != 0) return 16 * (1 + self_.below(5));
    return kMinMessage + self_.below(publisher_.max_record_size() - 64);
  }

  // The account comes first: it may count one more than the ledger if the process dies in between.
  Mark begin(std::uint32_t partition) {
    (void)self_.world.shared->account.begin(number_of(id_, partition));
    return self_.world.shared->ledger.begin(number_of(id_, partition));
  }
  void end(Mark mark, const Result<std::uint64_t>& offset) {
    note(self_.world, mark, offset);
    expect_sane(offset.error(), "publish");
  }
  void expect_sane(const Error& error, const char* call) {
    if (error.code == Errc::revoked && self_.world.options.revoke_after != 0ns) return;
    expect(error, {Errc::ok, Errc::full, Errc::timeout}, call);
  }

  void publish_batch() {
    const std::uint32_t partition = any_partition();
    auto batch = publisher_.batch(partition);
    CHILD_CHECK_OK(batch);
    std::vector<Mark> marks;
    for (std::uint64_t left = 1 + self_.below(3); left != 0; --left) {
      marks.push_back(begin(partition));
      const auto message = make_message(marks.back(), kMinMessage);
      const std::string key = MultiFailureAccount::key_of(marks.back());
      CHILD_CHECK_OK(batch->add({.key = Bytes{key}, .value = message}));
    }
    auto first = batch->commit(Deadline{20ms});
    for (std::size_t i = 0; i < marks.size(); ++i)
      note(self_.world, marks[i], first ? Result<std::uint64_t>{*first + i} : first.error());
    expect_sane(first.error(), "batch");
  }

  // Writes in place, then commits in full, commits less, or aborts. The record has no key, so this
  // is not for groups by key.
  void claim_one() {
    const std::uint32_t partition = publisher_.partition();
    if (self_.world.options.group.by_key) return publish_batch();
    const Mark mark = begin(partition);
    const std::size_t size = this->size();
    auto claim = publisher_.try_claim(size);
    if (!claim) return end(mark, claim.error());
    const std::uint64_t offset = claim->offset();
    const std::size_t used = kMinMessage + self_.below(size - kMinMessage + 1);
    write_message(claim->payload().first(used), mark);
    if (self_.below(16) == 0) ::usleep(200);
    if (self_.below(4) != 0) return end(mark, claim->commit(used));
    auto aborted = claim->abort();
    self_.world.shared->ledger.end(mark, aborted ? Fate::aborted : Fate::revoked, offset);
    expect_sane(aborted.error(), "abort");
  }

  Actor& self_;
  Publisher& publisher_;
  std::uint32_t id_;
};

bool is_silent(const World& world) { return detail::now_ns() < world.shared->silent_until_ns; }

void publish_from_child(Actor& self) {
  MultiFailureShared& shared = *self.world.shared;
  if (shared.fork_publishes.exchange(1) != 0) return;
  const Topic topic = self.world.open();
  auto publisher = topic.publisher();
  if (publisher) {
    Writer writer{self, *publisher, kForkPublisher};
    for (std::uint64_t left = self.below(100); left != 0 && !writer.is_full(); --left) {
      if (!is_silent(self.world)) writer.publish_something();
    }
  } else {
    expect(publisher.error(), {Errc::too_many}, "join in a child");
  }
  shared.fork_publishes = 0;
}

}  // namespace

void fork_a_child(Actor& self) {
  const ::pid_t pid = ::fork();
  CHILD_CHECK(pid >= 0);
  if (pid != 0) return;
  ::setpgid(0, 0);  // Signals to its parent's process group do not reach it.
  obey_nobody();
  if (self.below(3) == 0) publish_from_child(self);
  ::usleep(static_cast<::useconds_t>(self.below(200'000)));
  ::_exit(0);
}

int publish(Actor& self) {
  const World& world = self.world;
  const Topic topic = world.open();
  while (!self.must_end()) {
    const auto partition = static_cast<std::uint32_t>(self.below(world.options.partitions));
    auto publisher = join_at_last([&] { return topic.publisher({.partition = partition}); });
    Writer writer{self, *publisher, self.number};
    for (std::uint64_t left = 1 + self.below(2000); left != 0; --left) {
      if (self.must_end() || writer.is_full()) return 0;
      if (is_silent(world)) {
        ::usleep(1000);
        continue;
      }
      writer.publish_something();
      if (self.below(500) == 0) fork_a_child(self);
      self.pause(64, 500);
    }
  }
  return 0;
}

int publish_steadily(Actor& self) {
  World& world = self.world;
  const Topic topic = world.open();
  auto publisher = join_at_last([&] { return topic.publisher(); });
  Writer writer{self, *publisher, self.number};
  ++world.shared->joined;
  while (!world.shared->publishing_stops && !writer.is_full()) {
    if (!is_silent(world) && writer.publish_one(Deadline{20ms})) self.goes_on();
    ::usleep(200);
  }
  return 0;
}

}  // namespace leat::testing
