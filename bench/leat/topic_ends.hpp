// The two ends of a topic, as the harness wants them.
//
//     TopicSender sender(topic, Mode::exclusive);
//     TopicReceiver receiver(topic, WhenEmpty::pause);
//
// Each is made in the process (and thread) that uses it.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <vector>

#include "bench/harness/spin.hpp"
#include "topics.hpp"

namespace leat::bench {

// What a reader does when there is nothing to read.
enum class WhenEmpty {
  pause,       // Pauses briefly, then polls again, as every spinning side of `leat bench ipc` does.
  poll_again,  // Polls again at once: polling takes as long as a pause by itself.
  sleep,       // Sleeps in the kernel at once, without the usual spinning.
};

template <class ReaderOptions>
ReaderOptions adapted(WhenEmpty when_empty, ReaderOptions options) {
  if (when_empty == WhenEmpty::sleep) options.spin = options.patience = std::chrono::nanoseconds{0};
  return options;
}

inline constexpr std::size_t kPollLimit = 1000;  // Records of one poll.

enum class Mode { exclusive, shared };  // Whether a publisher is the topic's only one.

class TopicSender {
 public:
  TopicSender(const Topic& topic, Mode mode, std::optional<Stage> acknowledge = {})
      : publisher_{value_of(
            topic.publisher({.exclusive = mode == Mode::exclusive, .acknowledge = acknowledge}),
            "open a publisher")} {}

  // Always inline, as OutgoingPayloads::next(): so that two builds differ by what is measured.
  [[gnu::always_inline]] void send(Bytes message) {
    if (auto offset = publisher_.publish(message); !offset) [[unlikely]]
      throw topic_failure("publish", offset.error());
  }
  void flush() {}

  Publisher& publisher() noexcept { return publisher_; }

 private:
  Publisher publisher_;
};

// The same in batches: records become visible at flush().
class TopicBatch {
 public:
  explicit TopicBatch(TopicSender& sender)
      : batch_{value_of(sender.publisher().batch(), "open a batch")} {}

  [[gnu::always_inline]] void send(Bytes message) {
    if (auto added = batch_.add(message); !added) [[unlikely]]
      throw topic_failure("add to a batch", added.error());
  }
  void flush() {
    if (auto offset = batch_.commit(); !offset) [[unlikely]]
      throw topic_failure("publish a batch", offset.error());
  }

 private:
  Batch batch_;
};

// Reads by a subscriber, from the beginning unless told otherwise.
class TopicReceiver {
 public:
  TopicReceiver(const Topic& topic, WhenEmpty when_empty, From from = From::beginning)
      : when_empty_{when_empty},
        subscriber_{value_of(topic.subscriber(adapted(when_empty, SubscriberOptions{.from = from})),
                             "open a subscriber")} {
    subscriber_.on_event([](const Event& event) {
      throw Failure(fmt::format("offset {}: a gap of {} records ({})", event.first, event.count,
                                name_of(event.reason)));
    });
  }

  template <class Visit>
  std::size_t receive(std::size_t at_most, const Visit& visit) {
    while (true) {
      const auto count = subscriber_.poll(
          std::min(at_most, kPollLimit), [&](const Record& record) { visit(Bytes{record.value}); });
      if (!count) [[unlikely]]
        throw topic_failure("read", count.error());
      if (*count != 0) return *count;
      switch (when_empty_) {
        case WhenEmpty::pause: spin_.once(); break;
        case WhenEmpty::poll_again: spin_.once_without_pause(); break;
        case WhenEmpty::sleep: value_of(subscriber_.wait(), "wait"); break;
      }
    }
  }

 private:
  WhenEmpty when_empty_;
  Subscriber subscriber_;
  Spin spin_;
};

// A member of a group of the topic.
class TopicMember {
 public:
  // `batch` records are taken and acknowledged one by one; 0: as many as there are, polled.
  TopicMember(const Topic& topic, const std::string& group, MemberOptions options,
              std::uint32_t batch)
      : batch_{batch},
        group_{value_of(topic.find_group(group), "open the group")},
        member_{value_of(group_.join(options), "join the group")} {}

  // Passes what is there to visit(bytes); returns how many records.
  template <class Visit>
  std::size_t take(const Visit& visit, std::size_t at_most = kPollLimit) {
    if (batch_ == 0) return poll(visit, std::min(at_most, kPollLimit));
    return batch_ == 1 ? take_one(visit) : take_some(visit);
  }

  // False if the time is up.
  bool wait(const Deadline& deadline = Deadline::never()) {
    const auto waited = member_.wait(deadline);
    if (!waited && waited.error().code != Errc::timeout) {
      throw topic_failure("wait", waited.error());
    }
    return waited.has_value();
  }

 private:
  template <class Visit>
  std::size_t poll(const Visit& visit, std::size_t limit) {
    const auto count =
        member_.poll(limit, [&](const Delivery& delivery) { check(visit, delivery); });
    if (!count) [[unlikely]]
      throw topic_failure("take", count.error());
    return *count;
  }

  template <class Visit>
  std::size_t take_one(const Visit& visit) {
    const auto delivery = member_.receive(Deadline::immediate());
    if (!delivery) return nothing(delivery.error());
    check(visit, *delivery);
    value_of(member_.acknowledge(*delivery), "acknowledge");
    return 1;
  }

  template <class Visit>
  std::size_t take_some(const Visit& visit) {
    deliveries_.clear();
    const auto taken = member_.receive(deliveries_, batch_, Deadline::immediate());
    if (!taken) return nothing(taken.error());
    for (const Delivery& delivery : deliveries_) {
      check(visit, delivery);
      value_of(member_.acknowledge(delivery), "acknowledge");
    }
    return *taken;
  }

  static std::size_t nothing(Error error) {
    if (error.code != Errc::timeout) throw topic_failure("take", error);
    return 0;
  }

  // No record is requeued and no member dies, so each is delivered once.
  template <class Visit>
  static void check(const Visit& visit, const Delivery& delivery) {
    if (delivery.deliveries != 1) {
      throw Failure(fmt::format("a record was delivered {} times", delivery.deliveries));
    }
    visit(Bytes{delivery.record.value});
  }

  std::uint32_t batch_;
  Group group_;
  Member member_;
  std::vector<Delivery> deliveries_;
};

}  // namespace leat::bench
