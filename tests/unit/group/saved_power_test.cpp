// The power may fail while groups of a durable topic are made, saved or deleted, and leave any part of what
// was not synced. If this failed, a machine that loses its power would lose records that nobody has
// acknowledged, deliver some twice that must come at most once, or bring back a group that was deleted.
// The seed is printed; LEAT_SEED=seed repeats a run. LEAT_SOAK makes it longer.
#include <gtest/gtest.h>

#include <cstdlib>

#include "saved_testing.hpp"
#include "support/one_of.hpp"
#include "support/recorded_disk.hpp"
#include "support/store_world.hpp"

namespace leat {
namespace {

using testing::below;
using testing::Random;
using testing::RecordedDisk;

// A moment: how many calls the disk had seen by then. A failure after `cut` calls is later than it if the
// moment is not greater than `cut`.
using Moment = std::size_t;
constexpr Moment kNever = ~Moment{0};

// What really happened to a group.
struct TrueGroup {
  std::uint64_t id = 0;
  std::string name;
  bool at_most_once = false;
  Moment is_made = kNever;       // The call had returned.
  Moment is_deleting = kNever;   // It had begun.
  Moment is_deleted = kNever;    // It had returned.
  std::vector<Moment> handed;    // By offset,
  std::vector<Moment> done;      // and when it was acknowledged.
  std::vector<Moment> saved_by;  // When a save had ended that began after that.
  std::optional<Member> member;

  void note(std::vector<Moment>& moments, std::uint64_t offset, Moment now) {
    if (moments.size() <= offset) moments.resize(offset + 1, kNever);
    moments[offset] = std::min(moments[offset], now);
  }
  static bool is_before(const std::vector<Moment>& moments, std::uint64_t offset, Moment cut) {
    return offset < moments.size() && moments[offset] <= cut;
  }
};

class SavedWorld {
 public:
  SavedWorld(std::uint64_t seed, RecordedDisk::Lies lies)
      : random_{seed}, disk_{topic_.data_path(), lies}, replaced_{disk_} {
    publisher_.emplace(must(topic_->publisher()));
    saver_ = topic_.saver(++epoch_, disk_);
  }
  ~SavedWorld() {
    for (TrueGroup& group : groups_) group.member.reset();
  }

  void run(std::uint64_t steps) {
    for (std::uint64_t i = 0; i < steps; ++i) step();
  }
  std::size_t calls() const { return disk_.calls(); }

  // What is wrong with what is left after the first `cut` calls; "" if nothing is.
  std::string judge(Moment cut, std::uint64_t seed) {
    Random random{seed};
    testing::ScratchDirectory left;
    disk_.replay(cut, random, left.path);
    auto directory = must(detail::open_directory_path(left.path, false, false));
    std::map<std::uint64_t, detail::StoredGroup> found;
    for (detail::StoredGroup& one : topic_.load(directory.get())) found[one.id] = std::move(one);
    for (const TrueGroup& group : groups_) {
      const auto there = found.find(group.id);
      const std::string what = group.name + (group.at_most_once ? " (at most once)" : "");
      if (there == found.end()) {
        if (group.is_made <= cut && group.is_deleting > cut) return what + " is gone";
        continue;
      }
      if (group.is_deleted <= cut) return what + " has come back";
      if (!there->second.saved) return what + " cannot be read";
      const std::string wrong = judge(group, *there->second.saved, cut);
      if (!wrong.empty()) return what + ": " + wrong;
    }
    return "";
  }

 private:
  std::string judge(const TrueGroup& group, const detail::SavedGroup& saved, Moment cut) const {
    for (std::uint64_t offset = 0; offset < published_; ++offset) {
      const bool comes = delivers(saved, offset);
      const std::string which =
          " record " + std::to_string(offset) + ", position " + std::to_string(saved.offsets[0]);
      if (group.at_most_once) {
        if (comes && TrueGroup::is_before(group.handed, offset, cut)) return "twice" + which;
        continue;
      }
      if (!comes && !TrueGroup::is_before(group.done, offset, cut)) return "lost" + which;
      if (comes && TrueGroup::is_before(group.saved_by, offset, cut)) return "again" + which;
    }
    return "";
  }

  void step() {
    switch (below(random_, 12)) {
      case 0: make(); break;
      case 1: remove(); break;
      case 2: take_over(); break;
      case 3: die(); break;
      case 4:
      case 5: save(below(random_, 8) == 0); break;
      case 6:
        if (old_) (void)old_->save();  // A superseded archiver goes on.
        break;
      case 7: publish(below(random_, 900)); break;
      default: receive();
    }
  }
  void publish(std::uint64_t count) {
    count = std::min<std::uint64_t>(count, 3000 - published_);
    publish_numbers(*publisher_, count, published_);
    published_ += count;
  }
  void make() {
    if (groups_.size() == 8) return;
    TrueGroup group;
    group.at_most_once = below(random_, 2) == 0;
    group.name = "g" + std::to_string(groups_.size());
    const GroupMode mode = group.at_most_once ? GroupMode::at_most_once : GroupMode::at_least_once;
    const Group made = group_of(*topic_, {.mode = mode}, group.name);
    group.is_made = calls();
    group.id = topic_.saved_id(group.name);
    group.member.emplace(join(made));
    groups_.push_back(std::move(group));
  }
  void remove() {
    TrueGroup* const group = pick();
    if (group == nullptr || below(random_, 2) == 0) return;
    group->member.reset();
    group->is_deleting = calls();
    must(topic_->delete_group(group->name));
    group->is_deleted = calls();
  }
  void receive() {
    TrueGroup* const group = pick();
    if (group == nullptr) return;
    const std::uint64_t wanted = below(random_, 600);
    for (std::uint64_t i = 0; i < wanted; ++i) {
      auto taken = group->member->receive(Deadline::immediate());
      if (!taken) break;
      const std::uint64_t offset = taken->record.offset;
      group->note(group->handed, offset, calls());
      if (below(random_, 10) == 0) {
        if (!group->at_most_once) must(group->member->requeue(*taken));
      } else {
        group->note(group->done, offset, calls());
        must(group->member->acknowledge(*taken));
      }
    }
  }
  void save(bool is_closing) {
    std::vector<std::vector<std::uint64_t>> done(groups_.size());
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      for (std::uint64_t offset = 0; offset < groups_[i].done.size(); ++offset)
        if (groups_[i].done[offset] != kNever) done[i].push_back(offset);
    }
    if (is_closing) leave();
    if (!saver_->save(is_closing)) return;
    for (std::size_t i = 0; i < groups_.size(); ++i)
      for (const std::uint64_t offset : done[i])
        groups_[i].note(groups_[i].saved_by, offset, calls());
    if (!is_closing) return;
    // Who closed it dies before it takes the window away, and others go on with it.
    take_over();
    enter();
  }
  // Nobody is a member when a topic is closed.
  void leave() {
    for (TrueGroup& one : groups_) one.member.reset();
  }
  void enter() {
    for (TrueGroup& one : groups_) {
      if (one.is_deleting == kNever) one.member.emplace(join(must(topic_->find_group(one.name))));
    }
  }
  void take_over() {
    old_ = std::move(saver_);
    saver_ = topic_.saver(++epoch_, disk_);
  }
  // The archiver is killed while it saves, and another one takes over.
  void die() {
    disk_.die_at(calls() + below(random_, 12));
    (void)saver_->save();
    disk_.live();
    take_over();
    old_.reset();
  }
  TrueGroup* pick() {
    std::vector<TrueGroup*> living;
    for (TrueGroup& one : groups_)
      if (one.member) living.push_back(&one);
    return living.empty() ? nullptr : living[below(random_, living.size())];
  }

  UnkeptTopic topic_;
  Random random_;
  RecordedDisk disk_;
  DiskReplaced replaced_;
  std::uint64_t epoch_ = 0;
  std::uint64_t published_ = 0;
  std::optional<Publisher> publisher_;
  std::unique_ptr<detail::GroupSaver> saver_;
  std::unique_ptr<detail::GroupSaver> old_;
  std::vector<TrueGroup> groups_;
};

std::string fail_power(std::uint64_t seed, std::uint64_t worlds, RecordedDisk::Lies lies = {}) {
  for (const std::uint64_t end = seed + worlds; seed < end; ++seed) {
    Random random{seed};
    SavedWorld world{random(), lies};
    world.run(20 + below(random, 60));
    for (int i = 0; i < 40; ++i) {
      const Moment cut = below(random, world.calls() + 1);
      const std::string wrong = world.judge(cut, random());
      if (wrong.empty()) continue;
      return wrong + "; after call " + std::to_string(cut) + " of " +
             std::to_string(world.calls()) + "; LEAT_SEED=" + std::to_string(seed);
    }
  }
  return "";
}

TEST(SavedGroupPower, FailuresTakeNoPromise) {
  EXPECT_EQ(
      fail_power(test_seed(), std::getenv("LEAT_SOAK") != nullptr ? 5000 : 60 / testing::kOneOf),
      "");
}

// The judge notices a disk that does not do what it says.
TEST(SavedGroupPower, IsNoticedIfSyncDoesNothing) {
  EXPECT_NE(fail_power(1, 200, {.sync = true}), "");
}
TEST(SavedGroupPower, IsNoticedIfNamesAreNotSynced) {
  EXPECT_NE(fail_power(1, 200, {.sync_directory = true}), "");
}

}  // namespace
}  // namespace leat
