// Publishers of single records and batches, of which several die or stop in one execution. Then all
// living ones must continue, and every offset must be accounted for.
//
//     EXPECT_TRUE(survives("two", {.mortal = 2, .survivors = 1}));
//
// It asserts what docs/guarantees.md promises, wherever they die or stop: nobody
// gets `corrupt`; every record is delivered at the offset that publish()
// returned, so gaps have exactly the offsets of the dead; only claims of the dead
// become gaps, unless the topic has `revoke_after`; and nobody waits forever.
#pragma once

#include <functional>

#include "small_topic.hpp"

namespace leat {

struct MortalCase {
  std::uint32_t mortal = 2;        // Publishers that may die.
  bool together = false;           // They die at the same moment, not independently.
  std::uint32_t stopping = 0;      // Publishers that may stop; they continue when others are idle.
  std::uint32_t survivors = 1;     // Publishers that neither die nor stop.
  std::uint32_t items = 2;         // Records and batches of each publisher.
  std::uint32_t large_one_in = 4;  // Items that fill a third of a segment or more; 0: none.
  std::uint32_t segments = 4;
  std::uint64_t within = 45;  // They die or stop within so many operations; steps, if together.
  std::chrono::nanoseconds revoke_after{0};
  std::uint64_t reader_backs_off = 0;   // The reader sometimes pauses for up to this many ms.
  bool has_membarrier = true;           // If false, repairers are in a sandbox that refuses it.
};

class Mortals {
 public:
  Mortals(model::Execution& run, const MortalCase& c)
      : run_{run},
        case_{c},
        topic_{{.capacity_bytes = c.segments * kSegment, .revoke_after = c.revoke_after}},
        subscriber_{must(topic_->subscriber(from_beginning()), "subscriber")} {
    if (!c.has_membarrier) model::refuse_membarriers();
  }

  // False if the execution has failed or did not end.
  bool operator()() {
    for (std::uint32_t who = 0; who < publishers(); ++who) {
      threads_.push_back(run_.thread(name_of(who), [this, who] { publish_all(who); }));
    }
    if (!run_.run()) return false;  // Now all have joined and are suspended.
    doom();
    for (const model::Thread thread : threads_) model::resume(thread);
    run_.thread("subscriber", [this] { read_meanwhile(); });
    if (!run_.run()) return false;
    return go_on() && (check(), true);
  }

  std::uint32_t dead() const {
    std::uint32_t count = 0;
    for (const model::Thread thread : threads_) count += run_.killed(thread) ? 1 : 0;
    return count;
  }
  std::uint64_t gaps() const { return ledger_.gaps().size(); }
  std::uint32_t revoked() const { return revoked_; }

 private:
  std::uint32_t publishers() const { return case_.mortal + case_.stopping + case_.survivors; }
  std::string name_of(std::uint32_t who) const {
    const char* kind = who < case_.mortal                    ? "mortal "
                       : who < case_.mortal + case_.stopping ? "stopping "
                                                             : "survivor ";
    return kind + std::to_string(who);
  }

  void doom() {
    const std::vector<model::Thread> mortal(threads_.begin(), threads_.begin() + case_.mortal);
    if (case_.together) {
      run_.may_die_together(mortal, case_.within * publishers());
    } else {
      for (const model::Thread thread : mortal) run_.may_die(thread, case_.within);
    }
    for (std::uint32_t who = case_.mortal; who < case_.mortal + case_.stopping; ++who)
      run_.may_stop(threads_[who], case_.within);
  }

  void publish_all(std::uint32_t who) {
    auto publisher = must(topic_->publisher(), "publisher");
    model::suspend(model::current());
    model::count_operations();
    std::uint32_t number = 0;
    for (std::uint32_t i = 0; i < case_.items; ++i) publish_item(publisher, who, number);
  }

  // Sizes are chosen so that a record and a batch often take the same room but not as many offsets.
  void publish_item(Publisher& publisher, std::uint32_t who, std::uint32_t& number) {
    const std::uint32_t count = static_cast<std::uint32_t>(1 + model::random(3));
    const bool is_large = case_.large_one_in != 0 && model::random(case_.large_one_in) == 0;
    const std::size_t size = is_large ? (count == 1 ? kHalf : kThird) : kSmall + 16 * count;
    const std::uint32_t first = number;
    if (is_large || model::random(2) == 0) {
      note(publisher.publish(payload_of({who, number++}, size)), who, first, 1);
      return;
    }
    Batch batch = must(publisher.batch(), "batch");
    for (std::uint32_t i = 0; i < count; ++i)
      model::check(batch.add(payload_of({who, number++}, kSmall)).has_value(), "add");
    note(batch.commit(), who, first, count);
  }

  void note(const Result<std::uint64_t>& offset, std::uint32_t who, std::uint32_t number,
            std::uint32_t count) {
    if (case_.revoke_after != 0ns && offset.error().code == Errc::revoked) {
      ++revoked_;
      return;
    }
    model::check(offset.has_value(), "publish: " + describe(offset.error()));
    for (std::uint32_t i = 0; i < count; ++i) {
      model::check(published_.emplace(*offset + i, Mark{who, number + i}).second,
                   "two records with one offset");
    }
  }

  void read_meanwhile() {
    const auto is_over = [&](model::Thread who) { return run_.finished(who) || run_.killed(who); };
    for (const model::Thread who : threads_) {
      while (!is_over(who)) {
        read_some(subscriber_, ledger_, 100, 1ms);
        if (case_.reader_backs_off != 0 && model::random(4) == 0)
          ::usleep(static_cast<::useconds_t>(1000 * model::random(case_.reader_backs_off)));
      }
    }
  }

  // Waits longer than any timeout of the protocol. Then a newcomer publishes,
  // and everything is read.
  bool go_on() {
    const std::uint32_t newcomer = publishers();
    run_.thread("last", [this, newcomer] {
      for (int i = 0; i < 3; ++i) {
        read_some(subscriber_, ledger_, 100, 1ms);
        ::usleep(1'500'000);
      }
      auto publisher = must(topic_->publisher(), "publisher");
      publish(publisher, newcomer, 1, kSmall, published_);
      read_until(subscriber_, ledger_, topic_->info().partitions.at(0).end);
    });
    return run_.run();
  }

  void check() {
    ledger_.check_published(published_);
    // A claim that was not marked may be withdrawn, beside one of a dead
    // publisher or after `revoke_after`. Its publisher then makes it a gap
    // itself and claims again, and its caller does not notice.
    const bool may_revoke = case_.revoke_after != 0ns;
    for (const auto& [offset, reason] : ledger_.gaps()) {
      model::check(reason != GapReason::overwritten && (may_revoke || reason != GapReason::revoked),
                   "wrong reason of a gap");
      model::check(!published_.contains(offset), "a published record became a gap");
    }
    model::check(dead() != 0 || may_revoke || ledger_.gaps().empty(), "a gap although nobody died");
  }

  model::Execution& run_;
  MortalCase case_;
  SmallTopic topic_;
  Subscriber subscriber_;
  Ledger ledger_;
  std::vector<model::Thread> threads_;
  std::map<std::uint64_t, Mark> published_;
  std::uint32_t revoked_ = 0;
};

// `seen`: in how many executions at least two died and left a gap. A test
// with none of these shows nothing.
inline testing::AssertionResult survives(const char* name, const MortalCase& c, int executions,
                                         int* seen = nullptr) {
  return model::holds(model::explore(
      {.name = name, .executions = executions, .max_steps = 60'000}, [&](model::Execution& run) {
        Mortals mortals{run, c};
        if (mortals() && seen != nullptr && mortals.dead() > 1 && mortals.gaps() != 0) ++*seen;
      }));
}

}  // namespace leat
