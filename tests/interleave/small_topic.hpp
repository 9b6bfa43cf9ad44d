// Shared by the tests of the log's protocol: a topic of a few 4 KiB segments, records that contain
// who wrote them, and a ledger in which a reader accounts for every offset.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "leat/leat.hpp"
#include "leat/log/announcement.hpp"
#include "leat/log/directory.hpp"
#include "model.hpp"

namespace leat {

namespace model = detail::model;
using detail::Edge;
using model::Side;
using namespace std::chrono_literals;

inline constexpr std::size_t kSegment = detail::Geometry::kMinSegmentSize;
inline constexpr std::size_t kSmall = 8;     // Sizes of payloads, in bytes.
inline constexpr std::size_t kThird = 1344;  // Three of these records fill a segment.
inline constexpr std::size_t kHalf = 2032;   // Two of these records fill a segment.

inline namespace v0 {  // Where Topic names it as a friend.

struct TopicTesting {
  static Result<detail::NewTopic> new_topic(const TopicOptions& options) {
    return Topic::new_topic(options);
  }
  static Result<Topic> create(const std::string& name, const detail::NewTopic& topic,
                              const std::string& directory) {
    return Topic::create(name, topic, directory);
  }
  static std::shared_ptr<detail::MappedTopic> shared_pointer(const Topic& topic) {
    return topic.topic_;
  }
  static Topic make(std::shared_ptr<detail::MappedTopic> topic, const std::string& directory) {
    return Topic{"t", std::move(topic), directory};
  }
};

struct PublisherTesting {
  static void set_room_fd(Publisher& publisher, detail::WaitHandle room_fd) {
    publisher.writers_[0].set_room_fd(std::move(room_fd));
  }
};

}  // namespace v0

// A topic in a directory of its own; both are removed at the end.
class SmallTopic {
 public:
  explicit SmallTopic(TopicOptions options = {}) {
    if (options.capacity_bytes == TopicOptions{}.capacity_bytes)
      options.capacity_bytes = 4 * kSegment;
    options.segment_bytes = kSegment;
    options.participants = 8;
    options.directory = fresh_directory();
    auto created = Topic::create("t", options);
    model::check(created.has_value(), "create: " + describe(created.error()));
    topic_.emplace(std::move(*created));
  }
  ~SmallTopic() {
    topic_.reset();
    std::filesystem::remove_all(directory());
  }
  static std::string directory() {
    return "/dev/shm/leat-interleave-" + std::to_string(::getpid());
  }
  // An empty directory: removes what a failed execution left there.
  static std::string fresh_directory() {
    std::filesystem::remove_all(directory());
    return directory();
  }

  Topic* operator->() { return &*topic_; }
  Topic& operator*() { return *topic_; }
  // Hands the topic over, so that the caller decides when it is closed.
  Topic take() { return std::move(*topic_); }

 private:
  std::optional<Topic> topic_;
};

// Which publisher wrote a record, and its number among that publisher's records.
struct Mark {
  std::uint32_t publisher = 0;
  std::uint32_t number = 0;
  friend auto operator<=>(const Mark&, const Mark&) = default;
};

// A payload that repeats the mark, so that any missing part is noticed.
inline std::string payload_of(Mark mark, std::size_t size) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = reinterpret_cast<const char*>(&mark)[i % sizeof(mark)];
  return bytes;
}

// The mark of a payload; fails unless the payload is complete. The middle of
// a private copy is not checked, because the model does not track it: it may
// be newer in a copy that is about to be discarded.
inline Mark mark_of(std::string payload, bool in_place) {
  Mark mark;
  model::check(payload.size() >= sizeof(mark), "payload too short");
  std::memcpy(&mark, payload.data(), sizeof(mark));
  std::string expected = payload_of(mark, payload.size());
  if (!in_place && payload.size() > 32) {
    for (std::string* bytes : {&payload, &expected}) bytes->erase(16, bytes->size() - 32);
  }
  model::check(payload == expected, "payload is not whole");
  return mark;
}

template <class T>
T must(Result<T> result, const char* what) {
  model::check(result.has_value(), std::string{what} + ": " + describe(result.error()));
  return std::move(*result);
}

// What one reader got: records and gaps, which must follow each other without a missing offset.
class Ledger {
 public:
  explicit Ledger(std::uint64_t first = 0) : next_{first} {}

  void on_record(const Record& record, bool in_place = true) {
    const auto* data = record.value.data();
    const std::string bytes =
        in_place ? model::read_checked(data, record.value.size()) : std::string{record.text()};
    model::check(record.offset == next_, "record " + std::to_string(record.offset) +
                                             " instead of " + std::to_string(next_));
    const Mark mark = mark_of(bytes, in_place);
    const auto [last, is_first] = last_of_.try_emplace(mark.publisher, mark.number);
    model::check(is_first || last->second < mark.number, "a publisher's records are out of order");
    last->second = mark.number;
    records_[next_++] = mark;
  }
  void on_event(const Event& event) {
    model::check(event.first == next_, "gap from " + std::to_string(event.first) + " instead of " +
                                           std::to_string(next_));
    model::check(event.count != 0, "empty gap");
    for (std::uint64_t i = 0; i < event.count; ++i) gaps_[next_++] = event.reason;
  }

  std::uint64_t next() const { return next_; }
  const std::map<std::uint64_t, Mark>& records() const { return records_; }
  const std::map<std::uint64_t, GapReason>& gaps() const { return gaps_; }

  // Every published record is here, at the offset that publish() returned.
  void check_published(const std::map<std::uint64_t, Mark>& published) const {
    for (const auto& [offset, mark] : published) {
      const auto found = records_.find(offset);
      model::check(found != records_.end() && found->second == mark,
                   "record " + std::to_string(offset) + " was published but did not arrive");
    }
  }

 private:
  std::uint64_t next_;
  std::map<std::uint64_t, Mark> records_;
  std::map<std::uint64_t, GapReason> gaps_;
  std::map<std::uint32_t, std::uint32_t> last_of_;
};

// Publishes `count` records of `size` bytes, and adds those that succeed to `published`. Returns
// how many were revoked by others meanwhile; only for tests in which that may happen.
inline std::uint32_t publish_revocable(Publisher& publisher, std::uint32_t who, std::uint32_t count,
                                       std::size_t size, std::map<std::uint64_t, Mark>& published,
                                       std::uint32_t first_number = 0) {
  std::uint32_t revoked = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Mark mark{who, first_number + i};
    const auto offset = publisher.publish(payload_of(mark, size));
    if (!offset && offset.error().code == Errc::revoked) {
      ++revoked;
      continue;
    }
    model::check(offset.has_value(), "publish: " + describe(offset.error()));
    model::check(published.emplace(*offset, mark).second, "two records with one offset");
  }
  return revoked;
}

inline void publish(Publisher& publisher, std::uint32_t who, std::uint32_t count, std::size_t size,
                    std::map<std::uint64_t, Mark>& published, std::uint32_t first_number = 0) {
  model::check(publish_revocable(publisher, who, count, size, published, first_number) == 0,
               "a claim was revoked");
}

// Reads what is available; waits if there is nothing.
inline void read_some(Subscriber& subscriber, Ledger& ledger, std::uint64_t limit,
                      const Deadline& deadline, bool in_place = true) {
  const std::uint64_t before = ledger.next();
  subscriber.on_event([&](const Event& event) { ledger.on_event(event); });
  (void)must(
      subscriber.poll(limit, [&](const Record& record) { ledger.on_record(record, in_place); }),
      "poll");
  if (ledger.next() != before) return;
  const auto waited = subscriber.wait(deadline);
  model::check(waited || (waited.error().code == Errc::timeout && !deadline.is_never()),
               "wait: " + describe(waited.error()));
}

// Reads until the ledger's next offset is `until`; waits while there is nothing.
inline void read_until(Subscriber& subscriber, Ledger& ledger, std::uint64_t until,
                       bool in_place = true) {
  while (ledger.next() < until) {
    read_some(subscriber, ledger, until - ledger.next(), Deadline::never(), in_place);
  }
}

inline SubscriberOptions from_beginning() { return {.from = From::beginning, .spin = 0ns}; }

}  // namespace leat
