// Groups and topics that are made and deleted during a multi-failure test. Their
// records are not counted, but every call must return a plausible result, and
// every record that is handed out must be complete.
#include <vector>

#include "leat/group.hpp"
#include "world.hpp"

namespace leat::testing {
namespace {

constexpr std::uint64_t kGroups = 2;  // Groups that are made and deleted.

std::string group_name(std::uint64_t number) { return "passing-" + std::to_string(number); }

// Checks the error of a call on a group that others delete; the deleting process may be stopped.
void expect_passing(const Error& error, const char* call) {
  expect(error,
         {Errc::ok, Errc::timeout, Errc::closed, Errc::busy, Errc::not_found, Errc::too_many,
          Errc::in_flight_full, Errc::not_in_flight, Errc::invalid_argument},
         call);
}

// A record in place may be overwritten once its group was deleted by force. Then its
// acknowledgement must fail.
void take_a_few(Actor& self, const Group& group) {
  auto member = group.join();
  expect_passing(member.error(), "join a passing group");
  if (!member) return;
  for (std::uint64_t left = self.below(20); left != 0; --left) {
    std::vector<Delivery> taken;
    auto count = member->receive(taken, 1 + self.below(kMaxAtOnce),
                                 std::chrono::microseconds{self.below(1000)});
    expect_passing(count.error(), "take from a passing group");
    for (const Delivery& one : taken) {
      const bool is_whole = read_message(one.record.value).has_value();
      const auto done = self.below(8) == 0 ? member->requeue(one) : member->acknowledge(one);
      expect_passing(done.error(), "acknowledge in a passing group");
      CHILD_CHECK(is_whole || !done);
    }
  }
}

void seek_somewhere(Actor& self, const Topic& topic, const Group& group) {
  const auto partition = static_cast<std::uint32_t>(self.below(self.world.options.partitions));
  switch (self.below(3)) {
    case 0: return expect_passing(group.seek(From::beginning, partition).error(), "seek to start");
    case 1: return expect_passing(group.seek(From::end, partition).error(), "seek to end");
    default: {
      const PartitionInfo info = topic.info().partitions.at(partition);
      const std::uint64_t offset = info.start + self.below(info.end - info.start + 1);
      expect_passing(group.seek(From::offset(offset), partition).error(), "seek");
    }
  }
}

}  // namespace

int move_groups(Actor& self) {
  const Topic topic = self.world.open();
  while (!self.must_end()) {
    const std::string name = group_name(self.below(kGroups));
    GroupOptions options{.members = 8, .in_flight = 16};
    options.from = self.below(2) == 0 ? From::beginning : From::end;
    options.by_key = self.below(2) == 0;
    auto group = topic.group(name, options);
    expect_passing(group.error(), "make a group");
    if (!group) continue;
    for (std::uint64_t left = 1 + self.below(10); left != 0 && !self.must_end(); --left) {
      if (self.below(2) == 0) seek_somewhere(self, topic, *group);
      take_a_few(self, *group);
      self.pause(8, 1000);
    }
    if (self.below(3) == 0) expect_passing(topic.delete_group(name, false).error(), "delete");
    if (self.below(16) == 0) fork_a_child(self);
  }
  return 0;
}

// A group without working members holds room. The janitor moves such a group
// to the end, or deletes it.
int sweep(Actor& self) {
  const Topic topic = self.world.open();
  ++self.world.shared->joined;
  while (!self.world.shared->all_stop) {
    for (std::uint64_t i = 0; i < kGroups; ++i) {
      auto group = topic.find_group(group_name(i));
      expect_passing(group.error(), "find a group");
      if (group) {
        const bool deletes = self.below(8) == 0;
        const auto done = deletes ? topic.delete_group(group_name(i), self.below(2) == 0)
                                  : group->seek(From::end);
        expect_passing(done.error(), deletes ? "delete a group" : "bring a group up to date");
      }
      self.goes_on();
      ::usleep(1000);
    }
  }
  for (std::uint64_t i = 0; i < kGroups; ++i) {
    const auto done = topic.delete_group(group_name(i), true);
    expect(done.error(), {Errc::ok, Errc::not_found}, "delete a group at the end");
  }
  return 0;
}

int renew_topics(Actor& self) {
  const auto expect_any = [](const Error& error, const char* call) {
    expect(error,
           {Errc::ok, Errc::deleted, Errc::exists, Errc::not_found, Errc::busy, Errc::too_many,
            Errc::timeout, Errc::full, Errc::would_deadlock},
           call);
  };
  TopicOptions options{.capacity_bytes = 4 * 4096, .segment_bytes = 4096};
  options.directory = self.world.directory.path();
  while (!self.must_end()) {
    options.delete_when_unused = self.below(2) == 0;
    auto topic = Topic::open_or_create("passing", options);
    expect_any(topic.error(), "open or create");
    if (!topic) continue;
    auto subscriber = topic->subscriber({.from = From::beginning});
    expect_any(subscriber.error(), "subscribe");
    auto publisher = topic->publisher();
    expect_any(publisher.error(), "become a publisher");
    for (std::uint64_t left = self.below(30); left != 0; --left) {
      if (publisher)
        expect_any(publisher->publish("as long as it lasts", 1ms).error(), "publish to it");
      if (subscriber) expect_any(subscriber->poll(10, [](const Record&) {}).error(), "poll it");
    }
    if (self.below(4) == 0) {
      const DeleteOptions remove{.force = self.below(2) == 0, .directory = options.directory};
      expect_any(Topic::delete_topic("passing", remove).error(), "remove it");
    }
    self.pause(4, 2000);
    if (self.below(32) == 0) fork_a_child(self);
  }
  return 0;
}

}  // namespace leat::testing
