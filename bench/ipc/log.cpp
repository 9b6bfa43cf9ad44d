// Leat's own log: a topic for each direction, read by a subscriber or through a consumer group.
#include <fmt/format.h>

#include <optional>

#include "bench/topics.hpp"
#include "measure.hpp"
#include "methods.hpp"

namespace leat::bench::ipc {
namespace {

constexpr char kThere[] = "there";
constexpr char kBack[] = "back";
constexpr char kGroup[] = "group";

// Eight segments; one holds at least two of the largest records, or batches.
TopicOptions options_for(const Load& load) {
  constexpr std::uint64_t kMaxSegmentBytes = 256u << 20;
  constexpr std::uint64_t kOverhead = 64;  // Of a record, and some more.
  const std::uint64_t wanted = 2 * (load.size + kOverhead) * load.batch;
  std::uint64_t segment_bytes = 1u << 20;
  while (segment_bytes < wanted) segment_bytes *= 2;
  if (segment_bytes > kMaxSegmentBytes) {
    throw NotSupported(fmt::format("{} messages of {} bytes at a time would take a topic of {} MiB",
                                   load.batch, load.size, 8 * segment_bytes >> 20));
  }
  return {.capacity_bytes = 8 * segment_bytes};
}

// A blocking reader sleeps at once, as those of the other methods do.
template <class Options>
Options sleeping_as(Variant variant, Options options) {
  if (variant == Variant::blocking) options.spin = options.patience = std::chrono::nanoseconds{0};
  return options;
}

// What a subscriber and a member of a group do alike, as a reader of the topic.
class SubscribingReader {
 public:
  SubscribingReader(const Topic& topic, Variant variant)
      : subscriber_{value_of(
            topic.subscriber(sleeping_as(variant, SubscriberOptions{.from = From::beginning})),
            "open a subscriber")} {}

  template <class Look>
  std::size_t poll(std::size_t at_most, const Look& look) {
    const auto count =
        subscriber_.poll(at_most, [&](const Record& record) { look(Bytes{record.value}); });
    if (!count) throw topic_failure("read", count.error());
    return *count;
  }
  void wait() { value_of(subscriber_.wait(), "wait"); }

  static void prepare(const Topic&) {}

 private:
  Subscriber subscriber_;
};

class GroupReader {
 public:
  GroupReader(const Topic& topic, Variant variant)
      : group_{value_of(topic.find_group(kGroup), "open the group")},
        member_{value_of(group_.join(sleeping_as(variant, MemberOptions{})), "join the group")} {}

  template <class Look>
  std::size_t poll(std::size_t at_most, const Look& look) {
    const auto count = member_.poll(
        at_most, [&](const Delivery& delivery) { look(Bytes{delivery.record.value}); });
    if (!count) throw topic_failure("take", count.error());
    return *count;
  }
  void wait() { value_of(member_.wait(), "wait"); }

  static void prepare(const Topic& topic) {
    value_of(topic.group(kGroup, {.from = From::beginning}), "make the group");
  }

 private:
  Group group_;
  Member member_;
};

template <class Reader>
class LogChannel {
 public:
  explicit LogChannel(const Load& load) : load_{load} {
    const bool answers = load.pattern == Pattern::pingpong;
    const TopicOptions there = options_for(load);
    const TopicOptions back = answers ? there : options_for(Load{});
    for (const auto& [name, options] : {std::pair{kThere, there}, std::pair{kBack, back}}) {
      topics_.create(name, options);
      Reader::prepare(open_topic(topics_.directory(), name));
    }
  }

  class Side {
   public:
    Side(const LogChannel& channel, End end)
        : load_{channel.load_},
          to_{open_topic(channel.topics_.directory(), end == End::sender ? kThere : kBack)},
          from_{open_topic(channel.topics_.directory(), end == End::sender ? kBack : kThere)},
          publisher_{value_of(to_.publisher({.exclusive = true}), "open a publisher")},
          reader_{from_, load_.variant} {
      if (load_.batch > 1) batch_.emplace(value_of(publisher_.batch(), "open a batch"));
    }

    void send(std::span<const std::byte> message) {
      if (batch_) {
        if (auto added = batch_->add(message); !added) [[unlikely]]
          throw topic_failure("add to a batch", added.error());
      } else if (auto offset = publisher_.publish(message); !offset) [[unlikely]] {
        throw topic_failure("publish", offset.error());
      }
    }
    void flush() {
      if (auto offset = batch_->commit(); !offset) [[unlikely]]
        throw topic_failure("publish a batch", offset.error());
    }

    template <class Look>
    std::size_t receive(std::size_t at_most, const Look& look) {
      while (true) {
        if (const std::size_t count = reader_.poll(at_most, look); count != 0) return count;
        if (load_.variant == Variant::blocking) {
          reader_.wait();
        } else {
          spin_.once();
        }
      }
    }

   private:
    const Load& load_;
    Topic to_;
    Topic from_;
    Publisher publisher_;
    std::optional<Batch> batch_;
    Reader reader_;
    Spin spin_;
  };

 private:
  const Load& load_;
  TemporaryTopics topics_;
};

}  // namespace

std::vector<Method> log_methods() {
  return {
      {.name = "leat",
       .measure = &measure_channel<LogChannel<SubscribingReader>>,
       .batches = true,
       .facts = {.broadcast = true, .survives_kill = true}},
      {.name = "leat-group",
       .measure = &measure_channel<LogChannel<GroupReader>>,
       .batches = true,
       .facts = {.shared = true, .broadcast = true, .survives_kill = true}},
  };
}

}  // namespace leat::bench::ipc
