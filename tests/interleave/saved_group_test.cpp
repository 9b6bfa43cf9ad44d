// If this failed, a group that delivers at most once could deliver a record again after a failure of the machine:
// a member would get it although the files say that it is still to come. Or an archiver could sleep while groups wait.
#include <gtest/gtest.h>

#include <list>
#include <memory>
#include <set>

#include "archived_topic.hpp"
#include "leat/log/durable_wait.hpp"

namespace leat {
namespace {

using detail::GroupNews;
using detail::GroupSaver;

// Others run while a process waits for the disk.
class YieldingDisk : public detail::Disk {
 public:
  Result<void> write(int file, std::span<const Part> parts, std::uint64_t at) noexcept override {
    model::yield();
    return Disk::write(file, parts, at);
  }
  Result<void> sync(int file) noexcept override {
    model::yield();
    return Disk::sync(file);
  }
  using Disk::write;
};

// A group that delivers at most once, of a topic with a few records.
class SavedOnce {
 public:
  static constexpr std::uint64_t kRecords = 4;

  SavedOnce() {
    auto publisher = must(topic_->publisher({.acknowledge = Stage::committed}), "publisher");
    for (std::uint64_t i = 0; i < kRecords; ++i) (void)must(publisher.publish("x"), "publish");
    (void)must(topic_->group("g", {.from = From::beginning,
                                   .mode = GroupMode::at_most_once,
                                   .members = 3,
                                   .in_flight = 2}),
               "group");
  }

  // Of a process that has the topic for itself, as everybody here: they are fibers of one thread, and must not
  // wait for each other's mutex.
  std::unique_ptr<GroupSaver> saver(std::uint64_t epoch) {
    const auto& shared = attached_.emplace_back(topic_.attach());
    auto saver =
        std::make_unique<GroupSaver>(*shared, disk_, topic_.directory.get(), topic_.manifest);
    saver->begin(epoch);
    return saver;
  }
  // Takes what it gets, and leaves.
  void work() {
    const Topic own = TopicTesting::make(topic_.attach(), SmallTopic::directory() + "/topics");
    auto member = must(must(own.find_group("g"), "find").join(), "join");
    for (int turn = 0; turn < 8; ++turn) {
      auto taken = member.receive(Deadline::immediate());
      if (!taken) {
        model::check(taken.error() == Errc::timeout, describe(taken.error()));
        model::yield();
        continue;
      }
      const std::uint64_t offset = taken->record.offset;
      model::check(handed_.insert(offset).second, "twice: " + std::to_string(offset));
      check();
      model::check(member.acknowledge(*taken).has_value(), "acknowledge");
    }
  }
  // What is saved does not deliver what was handed out.
  void check() {
    auto groups = must(
        detail::load_groups(detail::Disk::system(), topic_.directory.get(), topic_.manifest.topic),
        "load");
    model::check(groups.size() == 1 && groups[0].saved.has_value(), "not saved");
    const detail::SavedGroup& saved = *groups[0].saved;
    for (const std::uint64_t offset : handed_) {
      bool comes = offset >= saved.offsets[0];
      for (const detail::SavedInFlight& one : saved.in_flight)
        comes = comes || one.offset == offset;
      model::check(!comes, "handed out, and saved as coming: " + std::to_string(offset) + " of " +
                               std::to_string(saved.offsets[0]));
    }
  }
  std::size_t handed() const { return handed_.size(); }

 private:
  ArchivedTopic topic_;
  YieldingDisk disk_;
  std::list<std::shared_ptr<detail::MappedTopic>> attached_;
  std::set<std::uint64_t> handed_;
};

struct SavedCase {
  std::uint64_t archivers = 1;
  bool may_stop = false;
  bool may_die = false;
  bool closes = false;  // While a member works, as in a process whose threads go on while it ends.
};

void save(model::Execution& run, const SavedCase& c) {
  SavedOnce group;
  std::vector<model::Thread> archivers;
  for (std::uint64_t epoch = 1; epoch <= c.archivers; ++epoch) {
    archivers.push_back(run.thread("archiver " + std::to_string(epoch), [&group, &c, epoch] {
      auto saver = group.saver(epoch);
      for (int turn = 0; turn < 3; ++turn) {
        const bool is_closing = c.closes && epoch == c.archivers && turn == 2;
        auto saved = saver->save(is_closing);
        model::check(saved || saved.error() == Errc::not_in_flight, describe(saved.error()));
        if (!saved) return;
        model::yield();
      }
    }));
  }
  if (c.may_stop) run.may_stop(archivers[0], 100);
  if (c.may_die) run.may_die(archivers[0], 100);
  run.thread("member", [&] { group.work(); });
  run.thread("other member", [&] { group.work(); });
  if (!run.run()) return;
  run.thread("next", [&] {
    group.check();
    if (c.closes) return;
    // The rest comes when the next archiver has saved.
    auto saver = group.saver(c.archivers + 1);
    for (int turn = 0; turn < 3; ++turn) {
      model::check(saver->save().has_value(), "save");
      group.work();
    }
  });
  (void)run.run();
}

model::Result check_saved(const char* name, const SavedCase& c) {
  return model::explore(
      {.name = name, .executions = 60, .max_steps = 60'000, .abandoned_allowed = 0.05},
      [&](model::Execution& run) { save(run, c); });
}

TEST(SavedGroupLimit, NothingIsHandedOutBehindWhatIsSaved) {
  EXPECT_TRUE(model::holds(check_saved("one archiver", {})));
  EXPECT_TRUE(model::holds(check_saved("superseded", {.archivers = 3})));
  EXPECT_TRUE(model::holds(check_saved("stopped", {.archivers = 2, .may_stop = true})));
  EXPECT_TRUE(model::holds(check_saved("dead", {.archivers = 2, .may_die = true})));
}

TEST(SavedGroupLimit, NothingIsHandedOutThatAClosingHasSaved) {
  EXPECT_TRUE(model::holds(check_saved("closing", {.closes = true})));
  EXPECT_TRUE(model::holds(check_saved("closing, superseded", {.archivers = 2, .closes = true})));
}

// Why the edge is needed: a member makes a record its own, then reads the limit; the archiver sets the limit, then
// checks whose the record is. One of the two sees the other. A word stands for the entry.
TEST(SavedGroupLimit, AClosingIsSeenOrSeesWhatIsHandedOut) {
  const auto close = [](model::Execution& run) {
    ArchivedTopic topic;
    detail::OwnedWord& limit = topic.shared->durable()->partition(0).file_base;
    const std::uint64_t epoch = detail::read_owned(limit).epoch;
    model::check(detail::set_owned(limit, epoch, 10), "set");
    std::uint64_t entry = 0;
    bool is_handed_out = false;
    bool is_saved = false;
    run.thread("member", [&] {
      std::uint64_t ready = 0;
      (void)detail::compare_exchange<Edge::in_flight>(entry, ready, std::uint64_t{1});
      is_handed_out = detail::load_seq_cst<Edge::sync>(limit.value) == 10;
    });
    run.thread("archiver", [&] {
      model::check(detail::set_owned(limit, epoch, 0), "set");
      is_saved = detail::load_seq_cst<Edge::in_flight>(entry) == 0;
    });
    if (!run.run()) return;
    model::check(!is_handed_out || !is_saved, "handed out, and saved as coming");
  };
  EXPECT_TRUE(model::holds(model::explore({.name = "closing", .executions = 1000}, close)));
  EXPECT_TRUE(model::breaks(
      model::explore({.name = "weakened", .executions = 5000}, [&](model::Execution& run) {
        model::weaken(Edge::in_flight);
        close(run);
      })));
}

// ---- News -----------------------------------------------------------------------------------------

// The archiver clears the news, reads what has moved, and sleeps if nothing has. Words stand for the cursors.
void announce_news(model::Execution& run, bool sleeps_on_archiver_wake) {
  ArchivedTopic topic;
  detail::MappedTopic& shared = *topic.shared;
  std::uint32_t moved[2] = {0, 0};
  run.thread("archiver", [&] {
    std::uint32_t& news = shared.durable()->header().groups;
    const auto is_news = [&] {
      return detail::group_news(detail::load_seq_cst<Edge::sync>(news)) != GroupNews::none;
    };
    for (;;) {
      (void)detail::exchange<Edge::sync>(news, detail::kGroupsUnsettled);
      std::uint32_t seen = 0;
      for (const std::uint32_t& one : moved) seen += detail::load_seq_cst<Edge::group_cursor>(one);
      if (seen == 2) return;
      std::uint32_t settled = detail::kGroupsUnsettled;
      detail::compare_exchange<Edge::sync>(news, settled, 0U);
      if (sleeps_on_archiver_wake) {
        detail::MappedTopic::sleep(shared.durable()->header().archiver_wake, Deadline::never(),
                                   is_news);
      } else {
        bool is_capped = false;
        const detail::MappedTopic::Sleep sleep{&shared, shared.announce_sleep(&is_capped)};
        if (!is_news()) detail::MappedTopic::sleep_for_data({&sleep, 1}, Deadline::never());
      }
    }
  });
  for (std::size_t i = 0; i < 2; ++i) {
    run.thread("member " + std::to_string(i), [&, i] {
      (void)detail::exchange<Edge::group_cursor>(moved[i], 1U);
      detail::announce_group_moved(shared, i == 0 ? GroupNews::moved : GroupNews::urgent);
    });
  }
  (void)run.run();
}

TEST(SavedGroupNews, AreNeverMissedByAnArchiverThatGoesToSleep) {
  for (const bool on_archiver_wake : {false, true}) {
    EXPECT_TRUE(model::holds(
        model::explore({.name = "news", .executions = 1000},
                       [&](model::Execution& run) { announce_news(run, on_archiver_wake); })));
    EXPECT_TRUE(model::breaks(
        model::explore({.name = "weakened", .executions = 5000}, [&](model::Execution& run) {
          model::weaken(Edge::sync);
          announce_news(run, on_archiver_wake);
        })));
  }
}

}  // namespace
}  // namespace leat
