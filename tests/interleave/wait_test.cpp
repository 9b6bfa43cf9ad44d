// If this failed, a subscriber or publisher could sleep although there is a record or room for it,
// forever or until its next timer.
#include <gtest/gtest.h>

#include "leat/log/wait_fd.hpp"
#include "leat/os/event.hpp"
#include "small_topic.hpp"

namespace leat {
namespace {

// One publisher, one or two subscribers; the subscribers may fall asleep between any two records.
void wake_readers(model::Execution& run, bool exclusive, std::uint32_t readers = 1) {
  SmallTopic topic;
  std::map<std::uint64_t, Mark> published;
  std::vector<Subscriber> subscribers;
  std::vector<Ledger> ledgers(readers);
  for (std::uint32_t i = 0; i < readers; ++i) {
    subscribers.push_back(must(topic->subscriber(from_beginning()), "subscriber"));
  }
  auto publisher = must(topic->publisher({.exclusive = exclusive}), "publisher");
  for (std::uint32_t i = 0; i < readers; ++i) {
    run.thread("subscriber " + std::to_string(i),
               [&, i] { read_until(subscribers[i], ledgers[i], 3); });
  }
  run.thread("publisher", [&] { publish(publisher, 0, 3, kSmall, published); });
  run.run();
}

// One publisher that needs room, one subscriber that frees it.
void wake_writer(model::Execution& run, bool exclusive) {
  SmallTopic topic{{.capacity_bytes = 2 * kSegment}};
  std::map<std::uint64_t, Mark> published;
  auto subscriber = must(topic->subscriber(from_beginning()), "subscriber");
  auto publisher = must(topic->publisher({.exclusive = exclusive}), "publisher");
  Ledger ledger;
  run.thread("publisher", [&] { publish(publisher, 0, 7, kHalf, published); });
  run.thread("subscriber", [&] { read_until(subscriber, ledger, 7); });
  run.run();
}

TEST(Wait, ReadersAreWokenBySharedPublishers) {
  EXPECT_TRUE(model::holds(
      model::explore({.name = "shared", .executions = 5000, .needless_timeouts_fail = true},
                     [](model::Execution& run) { wake_readers(run, false); })));
}

TEST(Wait, ReadersAreWokenByAnExclusivePublisher) {
  EXPECT_TRUE(model::holds(
      model::explore({.name = "exclusive", .executions = 5000, .needless_timeouts_fail = true},
                     [](model::Execution& run) { wake_readers(run, true); })));
}

TEST(Wait, AllSleepersAreWoken) {
  EXPECT_TRUE(
      model::holds(model::explore({.name = "two", .needless_timeouts_fail = true},
                                  [](model::Execution& run) { wake_readers(run, false, 2); })));
  EXPECT_TRUE(
      model::holds(model::explore({.name = "two, exclusive", .needless_timeouts_fail = true},
                                  [](model::Execution& run) { wake_readers(run, true, 2); })));
}

TEST(Wait, RoomWakesPublishers) {
  for (const bool exclusive : {false, true}) {
    EXPECT_TRUE(
        model::holds(model::explore({.name = "room", .needless_timeouts_fail = true},
                                    [&](model::Execution& run) { wake_writer(run, exclusive); })));
  }
}

// One publisher that never waits in publish(), but for its room descriptor, whose helper runs here. It
// sleeps on one word, as the model does.
struct EventLoop {
  EventLoop(const Topic& topic, bool exclusive)
      : publisher{must(topic.publisher({.exclusive = exclusive}), "publisher")} {
    const auto shared = TopicTesting::shared_pointer(topic);
    auto made = must(detail::WaitFd::start(shared, &shared->header().space_wake, &helper), "fd");
    fd = made->fd();
    PublisherTesting::set_room_fd(publisher, std::move(made));
  }
  void publish(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count;) {
      const auto offset = publisher.publish(payload_of({0, i}, kHalf), Deadline::immediate());
      if (offset) {
        ++i;
        continue;
      }
      model::check(offset.error().code == Errc::full, "publish: " + describe(offset.error()));
      while (!detail::is_readable(fd)) helper.serve();
    }
  }

  detail::WaitHelper helper{false};
  Publisher publisher;
  int fd = -1;
};

void wake_room_fd(model::Execution& run, bool exclusive) {
  SmallTopic topic{{.capacity_bytes = 2 * kSegment}};
  auto subscriber = must(topic->subscriber(from_beginning()), "subscriber");
  auto loop = std::make_unique<EventLoop>(*topic, exclusive);
  Ledger ledger;
  run.thread("publisher", [&] { loop->publish(7); });
  run.thread("subscriber", [&] { read_until(subscriber, ledger, 7); });
  if (run.run()) return;
  // Its helper sleeps for ever, and is never destroyed.
  static auto& left_behind = *new std::vector<std::unique_ptr<EventLoop>>;
  left_behind.push_back(std::move(loop));
}

TEST(Wait, RoomMakesDescriptorsReadable) {
  for (const bool exclusive : {false, true}) {
    EXPECT_TRUE(
        model::holds(model::explore({.name = "room fd", .needless_timeouts_fail = true},
                                    [&](model::Execution& run) { wake_room_fd(run, exclusive); })));
  }
}

// A subscriber that leaves also frees room.
TEST(Wait, LeavingWakesPublishers) {
  EXPECT_TRUE(model::holds(
      model::explore({.name = "leave", .needless_timeouts_fail = true}, [](model::Execution& run) {
        SmallTopic topic{{.capacity_bytes = 2 * kSegment}};
        std::map<std::uint64_t, Mark> published;
        std::optional<Subscriber> subscriber =
            must(topic->subscriber(from_beginning()), "subscriber");
        auto publisher = must(topic->publisher(), "publisher");
        run.thread("publisher", [&] { publish(publisher, 0, 6, kHalf, published); });
        run.thread("subscriber", [&] { subscriber.reset(); });
        run.run();
      })));
}

TEST(Wait, DeletionWakesEverybody) {
  EXPECT_TRUE(model::holds(model::explore({.name = "delete"}, [](model::Execution& run) {
    SmallTopic topic{{.capacity_bytes = 2 * kSegment}};
    auto subscriber = must(topic->subscriber(from_beginning()), "subscriber");
    auto idle =
        must(topic->subscriber({.from = From::end, .gating = false, .spin = 0ns}), "subscriber");
    auto publisher = must(topic->publisher(), "publisher");
    run.thread("publisher", [&] {
      while (true) {
        auto offset = publisher.publish(payload_of({0, 0}, kHalf));
        if (offset) continue;
        model::check(offset.error().code == Errc::deleted, "publish: " + describe(offset.error()));
        break;
      }
    });
    run.thread("idle", [&] {
      auto record = idle.receive();
      while (record) record = idle.receive();
      model::check(record.error().code == Errc::deleted, "receive: " + describe(record.error()));
    });
    run.thread("deleter", [&] {
      const auto removed =
          Topic::delete_topic("t", {.force = true, .directory = SmallTopic::directory()});
      model::check(removed.has_value(), "remove: " + describe(removed.error()));
    });
    run.run();
  })));
}

// ---- Why the edges are needed -------------------------------------------------------------------

testing::AssertionResult breaks_weakened(const std::function<void()>& weaken,
                                         const model::Body& body) {
  return model::breaks(
      model::explore({.name = "weakened", .executions = 20'000, .needless_timeouts_fail = true},
                     [&](model::Execution& run) {
                       weaken();
                       body(run);
                     }));
}

TEST(WaitEdges, SharedPublishersNeedTheSleepersFence) {
  EXPECT_TRUE(breaks_weakened([] { model::weaken(Edge::sleeping, Side::rmw); },
                              [](model::Execution& run) { wake_readers(run, false); }));
}

TEST(WaitEdges, SharedPublishersNeedTheirOwnFence) {
  EXPECT_TRUE(breaks_weakened(
      [] {
        model::weaken(Edge::record_ready, Side::rmw);
        model::weaken(Edge::record_ready, Side::load);
      },
      [](model::Execution& run) { wake_readers(run, false); }));
}

TEST(WaitEdges, ExclusivePublishersNeedTheSleepersMembarrier) {
  EXPECT_TRUE(breaks_weakened([] { model::drop_membarriers(); },
                              [](model::Execution& run) { wake_readers(run, true); }));
}

TEST(WaitEdges, WaitingForRoomNeedsBothFences) {
  EXPECT_TRUE(breaks_weakened([] { model::weaken(Edge::sleeping, Side::rmw); },
                              [](model::Execution& run) { wake_writer(run, false); }));
  EXPECT_TRUE(breaks_weakened([] { model::weaken(Edge::cursor, Side::rmw); },
                              [](model::Execution& run) { wake_writer(run, false); }));
}

TEST(WaitEdges, RoomDescriptorsNeedBothFences) {
  EXPECT_TRUE(breaks_weakened([] { model::weaken(Edge::sleeping, Side::rmw); },
                              [](model::Execution& run) { wake_room_fd(run, false); }));
  EXPECT_TRUE(breaks_weakened([] { model::weaken(Edge::cursor, Side::rmw); },
                              [](model::Execution& run) { wake_room_fd(run, false); }));
}

}  // namespace
}  // namespace leat
