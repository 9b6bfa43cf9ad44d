// If this failed, two processes that both think that they are the archiver of a durable topic could lose
// records, or write some twice; or publishers could reuse memory that is not on disk yet.
#include <gtest/gtest.h>

#include <memory>

#include "archived_topic.hpp"
#include "leat/log/disk_reader.hpp"

namespace leat {
namespace {

using detail::Archiver;

constexpr std::uint32_t kRecords = 10;  // Of kHalf bytes: almost two laps of the window.

struct ArchiverCase {
  std::uint32_t archivers = 2;
  bool may_die = false;
  bool may_stop = false;
  bool hand_over = false;  // In order, now and then.
  bool supersede = false;     // A living archiver is superseded, as if it were stopped.
  detail::StoredDurability durability = detail::StoredDurability::os;
};

// What a process's thread does, in any order of chances.
void archive(ArchivedTopic& topic, const ArchiverCase& c) {
  auto archiver = topic.archiver();
  for (int turn = 0; turn < 60 && topic.safe() < kRecords; ++turn) {
    if (!archiver->is_active()) {
      const std::uint64_t seen = archiver->word();
      const bool is_free = (seen & 1) != 0 || !archiver->is_alive(seen);
      if (is_free || (c.supersede && model::random(4) == 0)) (void)archiver->take_over(seen);
      if (!archiver->is_active()) {
        archiver->leave();
        model::yield();
      }
      continue;
    }
    auto written = archiver->write();
    if (!written) {
      model::check(written.error() == Errc::not_in_flight, "write: " + describe(written.error()));
      archiver->leave();
    } else if (c.hand_over && model::random(3) == 0) {
      archiver->hand_over();
    } else if (*written == 0) {
      archiver->repair_holes();
      model::yield();
    }
  }
  archiver->hand_over();
}

// Reads as a subscriber behind the window does. What a successor writes again must never be reported as missing.
void read_from_disk(const ArchivedTopic& topic) {
  auto reader = must(detail::DiskReader::open(*topic.shared->durable(), 0), "open");
  std::uint64_t next = must(reader->seek(0), "seek");
  detail::StoredEntry entry;
  for (int turn = 0; turn < 60 && next < kRecords; ++turn) {
    const bool is_there = must(reader->next(entry, topic.written()), "next");
    model::check(!reader->misses_records(), "missing");
    if (!is_there) {
      model::yield();
      continue;
    }
    model::check(entry.is_record || entry.gap.reason == GapReason::died, "damaged");
    model::check((entry.is_record ? entry.record.offset : entry.gap.first) == next, "another");
    next = reader->offset();
  }
}

void go(model::Execution& run, const ArchiverCase& c) {
  ArchivedTopic topic{c.durability};
  std::map<std::uint64_t, Mark> published;
  run.thread("publisher", [&] {
    auto publisher = must(topic->publisher({.acknowledge = Stage::committed}), "publisher");
    for (std::uint32_t i = 0; i < kRecords; ++i) {
      const Mark mark{0, i};
      const auto offset = publisher.publish(payload_of(mark, kHalf), 300ms);
      if (!offset) return;  // Nobody keeps it any more.
      published[*offset] = mark;
    }
  });
  std::vector<model::Thread> archivers;
  for (std::uint32_t i = 0; i < c.archivers; ++i)
    archivers.push_back(run.thread("archiver " + std::to_string(i), [&] { archive(topic, c); }));
  for (std::size_t i = 0; i < archivers.size(); ++i) {
    if (c.may_die && i == 0) run.may_die(archivers[i], 150);
    if (c.may_stop && i == 1) run.may_stop(archivers[i], 150);
  }
  run.thread("reader", [&] {
    std::uint64_t before = 0;
    for (int attempt = 0; attempt < 6; ++attempt) {
      const std::uint64_t safe = topic.safe();
      model::check(safe >= before, "it moved back");
      topic.check_disk(safe, {});
      before = safe;
      for (int i = 0; i < 10; ++i) model::yield();
    }
  });
  run.thread("subscriber", [&] { read_from_disk(topic); });
  if (!run.run()) return;
  // Whoever comes next finds everything that was published, or writes it.
  run.thread("next", [&] {
    auto archiver = topic.archiver();
    std::string why;
    for (int turn = 0; turn < 100; ++turn) {
      if (!archiver->is_active()) {
        auto taken = archiver->take_over(archiver->word());
        if (!taken) why = describe(taken.error());
        continue;
      }
      if (must(archiver->write(), "write") == 0 && archiver->sync_all() &&
          detail::end_of_claims(*topic.shared, 0) == topic.safe())
        break;
      archiver->repair_holes();
    }
    model::check(archiver->is_active(), "cannot take over: " + why);
    for (const auto& [offset, mark] : published)
      model::check(offset < topic.safe(), "not written: " + std::to_string(offset));
    topic.check_disk(topic.safe(), published);
  });
  (void)run.run();
}

testing::AssertionResult holds(const char* name, const ArchiverCase& c) {
  return model::holds(model::explore(
      {.name = name, .executions = 300, .max_steps = 60'000, .abandoned_allowed = 0.05},
      [&](model::Execution& run) { go(run, c); }));
}

TEST(Archiver, OneAfterTheOtherWritesEverythingOnce) {
  EXPECT_TRUE(holds("hand over", {.hand_over = true}));
  EXPECT_TRUE(holds("three hand over", {.archivers = 3, .hand_over = true}));
}

TEST(Archiver, AnotherTakesOverFromOneThatDies) {
  EXPECT_TRUE(holds("one dies", {.archivers = 3, .may_die = true}));
  EXPECT_TRUE(
      holds("one dies, others hand over", {.archivers = 3, .may_die = true, .hand_over = true}));
}

TEST(Archiver, ASupersededOneChangesNothing) {
  EXPECT_TRUE(holds("superseded", {.archivers = 3, .supersede = true}));
  EXPECT_TRUE(holds("stopped", {.archivers = 3, .may_stop = true, .supersede = true}));
  EXPECT_TRUE(holds(
      "everything",
      {.archivers = 3, .may_die = true, .may_stop = true, .hand_over = true, .supersede = true}));
}

// Others wait longer for an archiver that says that it waits for the disk. A superseded one must not hide that.
TEST(Archiver, ASupersededOneDoesNotHideThatAnotherWaits) {
  EXPECT_TRUE(model::holds(
      model::explore({.name = "syncing", .executions = 300}, [](model::Execution& run) {
        ArchivedTopic topic;
        auto first = topic.archiver();
        auto other = topic.archiver();
        const std::uint32_t& syncing = topic.shared->durable()->header().syncing;
        run.thread("superseded", [&] {
          model::check(must(first->take_over(first->word()), "take"), "taken");
          for (int i = 0; i < 3; ++i) (void)first->wait_for_disk([] { return Result<void>{}; });
        });
        run.thread("successor", [&] {
          while (!first->is_active()) model::yield();
          if (!must(other->take_over(first->epoch() << 1), "take")) return;
          (void)other->wait_for_disk([&]() -> Result<void> {
            for (int i = 0; i < 5; ++i) {
              model::check(detail::load_relaxed<detail::Why::test>(syncing) == other->epoch(),
                           "hidden");
              model::yield();
            }
            return {};
          });
        });
        (void)run.run();
      })));
}

// What the last archiver has not synced is written again.
TEST(Archiver, SuccessorsBeginWhereStableStorageEnds) {
  for (const auto durability :
       {detail::StoredDurability::interval, detail::StoredDurability::fsync}) {
    EXPECT_TRUE(holds("synced: hand over", {.hand_over = true, .durability = durability}));
    EXPECT_TRUE(holds("synced: everything", {.archivers = 3,
                                             .may_die = true,
                                             .may_stop = true,
                                             .hand_over = true,
                                             .supersede = true,
                                             .durability = durability}));
  }
}

// ---- Waiting for stable storage -----------------------------------------------------------------

// Publishers and a subscriber sleep until the archiver has synced. If a wake-up were lost, they would sleep
// for ever, which the model reports.
TEST(ArchiverWaits, WhoWaitsForASyncIsWoken) {
  EXPECT_TRUE(model::holds(model::explore(
      {.name = "wait for a sync", .executions = 300, .max_steps = 60'000},
      [](model::Execution& run) {
        ArchivedTopic topic{detail::StoredDurability::fsync};
        std::uint32_t left = 2;
        for (const char* name : {"one", "other"}) {
          run.thread(name, [&] {
            auto publisher = must(topic->publisher(), "publisher");
            for (std::uint32_t i = 0; i < 2; ++i) {
              const std::uint64_t offset = must(publisher.publish("x"), "publish");
              model::check(topic.safe() > offset, "acknowledged too early");
            }
            --left;
          });
        }
        run.thread("subscriber", [&] {
          auto subscriber = must(topic->subscriber({.from = From::beginning}), "subscriber");
          for (std::uint64_t i = 0; i < 4; ++i) {
            const Record record = must(subscriber.receive(), "receive");
            model::check(record.offset == i && topic.safe() > i, "seen too early");
          }
        });
        run.thread("archiver", [&] {
          auto archiver = topic.archiver();
          model::check(must(archiver->take_over(archiver->word()), "take"), "taken");
          while (left != 0 || topic.safe() != 4) {
            if (must(archiver->write(), "write") == 0) model::yield();
          }
          archiver->hand_over();
        });
        (void)run.run();
      })));
}

// The archiver sleeps unless a sync is wanted, and a thread that wants one wakes it.
TEST(ArchiverWaits, ItsSleepEndsWhenSomebodyWantsASync) {
  const auto sleep_once = [](model::Execution& run) {
    ArchivedTopic topic;
    const detail::DurableWindow& window = *topic.shared->durable();
    run.thread("archiver", [&] {
      while (!window.is_any_wanted())
        detail::MappedTopic::sleep(window.header().archiver_wake, Deadline::never(),
                                   [&] { return window.is_any_wanted(); });
    });
    for (const std::uint64_t until : {1U, 2U}) {
      run.thread("who wants " + std::to_string(until), [&window, until] {
        window.want(0, until);
        detail::MappedTopic::wake(window.header().archiver_wake);
      });
    }
    (void)run.run();
  };
  EXPECT_TRUE(model::holds(model::explore({.name = "sleep", .executions = 2000}, sleep_once)));
  EXPECT_TRUE(model::breaks(
      model::explore({.name = "weakened", .executions = 5000}, [&](model::Execution& run) {
        model::weaken(Edge::sync);
        sleep_once(run);
      })));
}

// ---- Why the edge is needed ---------------------------------------------------------------------

// Whoever sees how far records are written can read them. A word stands for the frames.
TEST(ArchiverEdges, FramesAreWrittenBeforeWrittenMoves) {
  const auto write = [](model::Execution& run) {
    ArchivedTopic topic;
    std::uint64_t frame = 0;
    detail::OwnedWord& word = topic.shared->durable()->partition(0).written;
    const std::uint64_t epoch = detail::read_owned(word).epoch;
    run.thread("archiver", [&] {
      detail::store_relaxed<detail::Why::test>(frame, std::uint64_t{1});
      model::check(detail::set_owned(word, epoch, 1), "set");
    });
    run.thread("reader", [&] {
      for (int attempt = 0; attempt < 10; ++attempt) {
        if (topic.written() == 1)
          model::check(detail::load_relaxed<detail::Why::test>(frame) == 1, "not written");
      }
    });
    (void)run.run();
  };
  EXPECT_TRUE(model::holds(model::explore({.name = "written", .executions = 300}, write)));
  EXPECT_TRUE(model::breaks(
      model::explore({.name = "weakened", .executions = 5000}, [&](model::Execution& run) {
        model::weaken(Edge::archiver);
        write(run);
      })));
}

}  // namespace
}  // namespace leat
