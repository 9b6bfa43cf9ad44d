// The oracle of the consumer group tests: records in shared memory which process took and which
// acknowledged each record. If it failed, lost or duplicated deliveries would go unnoticed.
//
//     account->published(mark);                                 // a publisher, after publish()
//     account->taken(delivery, mode);                           // a member, for each that it takes
//     auto done = account->acknowledge(member, delivery);       // instead of member.acknowledge()
//     EXPECT_EQ(account->complaints(), std::vector<std::string>{});
//
// A process may be killed after a call and before it is noted here. Then both
// outcomes are accepted.
#pragma once

#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "leat/group.hpp"
#include "leat/leat.hpp"
#include "support/process.hpp"
#include "support/trail.hpp"

namespace leat::testing {

// Whether the process has ended completely. The kernel releases its locks shortly before that.
inline bool is_gone(::pid_t pid) {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/stat", static_cast<int>(pid));
  std::FILE* file = std::fopen(path, "r");
  if (file == nullptr) return true;
  char line[256] = {};
  const bool read = std::fgets(line, sizeof(line), file) != nullptr;
  std::fclose(file);
  const std::string text = line;
  const std::size_t name_end = text.rfind(')');  // The state follows the name.
  if (!read || name_end == std::string::npos || name_end + 2 >= text.size()) return true;
  return text[name_end + 2] == 'Z' || text[name_end + 2] == 'X';
}

template <std::size_t kPublishers, std::size_t kRecords>
class AccountOf {
 public:
  static constexpr std::size_t kKeys = 8;
  static std::string key_of(Mark mark) { return "key " + std::to_string(mark.sequence % kKeys); }

  // ---- Publishers ---------------------------------------------------------------------------------

  // Starts the next record of this publisher. Call it before publishing: once published, the record
  // may be delivered at any time.
  Mark begin(std::uint32_t publisher) noexcept { return {publisher, count_[publisher]++}; }
  void take_back(Mark mark) noexcept { count_[mark.publisher] = mark.sequence; }
  void published(Mark mark) noexcept { entry(mark).published = 1; }
  bool is_full(std::uint32_t publisher) const noexcept { return count_[publisher] >= kRecords; }
  std::uint32_t begun(std::uint32_t publisher) const noexcept { return count_[publisher]; }

  // ---- Members ------------------------------------------------------------------------------------

  // Nothing, and a complaint, if no publisher has begun this record.
  std::optional<Mark> mark_of(const Delivery& delivery) noexcept {
    const auto mark = read_message(delivery.record.value);
    if (!mark || mark->publisher >= kPublishers || mark->sequence >= count_[mark->publisher]) {
      complain("offset %llu: no such record, or not whole",
               static_cast<unsigned long long>(delivery.record.offset));
      return std::nullopt;
    }
    return mark;
  }

  // With a lease, a member may be stopped just after it was handed a record,
  // until others have taken and acknowledged that record. Pass the start of
  // its call as `call_began_ns`, so that this is accepted.
  void taken(const Delivery& delivery, GroupMode mode,
             std::int64_t call_began_ns = std::numeric_limits<std::int64_t>::max()) noexcept {
    const auto mark = mark_of(delivery);
    if (!mark) return;
    Entry& one = entry(*mark);
    const std::uint32_t before = one.taken++;
    if (one.lenient != 0) return;  // The group was moved by a seek.
    const std::int64_t acknowledged_at = one.acknowledged_at_ns;
    if (acknowledged_at != 0 && acknowledged_at < call_began_ns)
      complain_of(*mark, delivery, "taken after it was acknowledged");
    if (mode == GroupMode::at_most_once && before > one.requeued)
      complain_of(*mark, delivery, "taken twice in a group with at_most_once");
    if (delivery.deliveries == 1 && one.firsts++ != 0)
      complain_of(*mark, delivery, "two first deliveries");
    if (before == 0 && delivery.deliveries != 1) ++unnoted_;
    if (before != 0) ++again_;
  }

  template <class Acknowledge>
  Result<void> acknowledge(const Delivery& delivery, Acknowledge&& acknowledge) noexcept {
    const auto mark = mark_of(delivery);
    if (!mark) return acknowledge();
    Entry& one = entry(*mark);
    ++one.unsure;
    Result<void> done = acknowledge();
    if (done && one.acknowledged++ != 0 && one.lenient == 0)
      complain_of(*mark, delivery, "acknowledged twice");
    if (done) one.acknowledged_at_ns = detail::now_ns();
    --one.unsure;
    return done;
  }
  Result<void> acknowledge(Member& member, const Delivery& delivery) noexcept {
    return acknowledge(delivery, [&] { return member.acknowledge(delivery); });
  }

  Result<void> requeue(Member& member, const Delivery& delivery,
                       std::chrono::nanoseconds delay = std::chrono::nanoseconds{0}) noexcept {
    if (const auto mark = mark_of(delivery)) ++entry(*mark).requeued;
    return member.requeue(delivery, delay);
  }
  // For a record that poll() hands out, and acknowledges after the callback has returned.
  void acknowledge_later(const Delivery& delivery) noexcept {
    if (const auto mark = mark_of(delivery)) ++entry(*mark).unsure;
  }

  // By key: a member has a key from taking its first record with that key until just before it lets
  // go of the last. With a lease, a member may be stopped until others have the key;
  // `call_began_ns` as in taken().
  void take_key(const Delivery& delivery,
                std::int64_t call_began_ns = std::numeric_limits<std::int64_t>::max()) noexcept {
    const auto mark = mark_of(delivery);
    if (!mark) return;
    if (!delivery.record.has_key || delivery.record.key.text() != key_of(*mark)) {
      complain_of(*mark, delivery, "wrong key");
      return;
    }
    Key& key = keys_[mark->sequence % kKeys];
    if (entry(*mark).is_back.exchange(0) != 0) --key.back;
    if (call_began_ns == std::numeric_limits<std::int64_t>::max()) hold_key(*mark, delivery, key);
    check_order(*mark, delivery, key, call_began_ns);
  }
  // Call before requeueing a record by key, without a lease: until the record is taken again,
  // nobody may take a later one with its key for the first time.
  void comes_back(const Delivery& delivery) noexcept {
    const auto mark = mark_of(delivery);
    if (mark && entry(*mark).is_back.exchange(1) == 0) ++keys_[mark->sequence % kKeys].back;
  }
  void let_go_of_key(const Delivery& delivery) noexcept {
    const auto mark = mark_of(delivery);
    if (!mark) return;
    Key& key = keys_[mark->sequence % kKeys];
    if (--key.count == 0) key.holder = 0;
  }

  // ---- The end ------------------------------------------------------------------------------------

  // From now on, any record begun so far may be delivered again or not at all.
  void be_lenient() noexcept {
    for (std::uint32_t publisher = 0; publisher < kPublishers; ++publisher) {
      for (std::uint32_t i = 0; i < count_[publisher]; ++i) entries_[publisher][i].lenient = 1;
    }
  }

  // Records that must still be delivered (at least once): not acknowledged, and no process died
  // while acknowledging them.
  std::uint64_t open() const noexcept {
    return count_those([](const Entry& one) {
      return one.published != 0 && one.lenient == 0 && one.acknowledged == 0 && one.unsure == 0;
    });
  }
  // Records that nobody has noted as taken.
  std::uint64_t untaken() const noexcept {
    return count_those(
        [](const Entry& one) { return one.published != 0 && one.lenient == 0 && one.taken == 0; });
  }
  std::uint64_t unsure() const noexcept {
    return count_those([](const Entry& one) { return one.unsure != 0; });
  }
  std::uint64_t acknowledged() const noexcept {
    return count_those([](const Entry& one) { return one.acknowledged != 0; });
  }
  // Records whose first noted delivery was already counted as a redelivery.
  std::uint64_t unnoted() const noexcept { return unnoted_; }
  std::uint64_t again() const noexcept { return again_; }

  std::vector<std::string> complaints() const {
    std::vector<std::string> all;
    const std::uint32_t count = complaint_count_;
    for (std::uint32_t i = 0; i < count && i < complaints_.size(); ++i) {
      all.emplace_back(complaints_[i].data());
    }
    return all;
  }
  [[gnu::format(printf, 2, 3)]] void complain(const char* format, ...) noexcept {
    const std::uint32_t index = complaint_count_++;
    if (index >= complaints_.size()) return;
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(complaints_[index].data(), complaints_[index].size(), format, arguments);
    va_end(arguments);
  }

 private:
  struct Entry {
    std::atomic<std::int64_t> acknowledged_at_ns;  // 0: not acknowledged
    std::atomic<std::uint8_t> published;
    std::atomic<std::uint8_t> lenient;
    std::atomic<std::uint8_t> taken;
    std::atomic<std::uint8_t> firsts;  // Of those, first deliveries.
    std::atomic<std::uint8_t> acknowledged;
    std::atomic<std::uint8_t> requeued;
    std::atomic<std::uint8_t> is_back;  // Requeued by key, and not taken again.
    std::atomic<std::uint8_t> unsure;   // Acknowledgements begun and not finished.
  };
  struct Key {
    std::atomic<::pid_t> holder;
    std::atomic<std::uint32_t> count;      // Records with this key that the holder has.
    std::atomic<std::uint64_t> next;       // Offset after that of the latest first delivery.
    std::atomic<std::int64_t> next_at_ns;  // When `next` was stored, or slightly before.
    std::atomic<std::uint32_t> back;       // Records requeued and not taken again.
  };

  // Complains if another living process holds the key.
  void hold_key(Mark mark, const Delivery& delivery, Key& key) noexcept {
    const ::pid_t self = ::getpid();
    ::pid_t holder = key.holder;
    // A dying process may have lost its locks and still exist for a moment.
    for (int i = 0; holder != 0 && holder != self && !is_gone(holder); ++i) {
      if (key.holder != holder || i == 20'000) {
        complain_of(mark, delivery, "two members have its key");
        break;
      }
      ::usleep(100);
    }
    key.holder = self;
    ++key.count;
    if (holder != self) key.count = 1;
  }
  void check_order(Mark mark, const Delivery& delivery, Key& key,
                   std::int64_t call_began_ns) noexcept {
    if (delivery.deliveries != 1) return;
    if (key.next > delivery.record.offset && key.next_at_ns < call_began_ns)
      complain_of(mark, delivery, "out of order by key");
    if (key.back != 0) complain_of(mark, delivery, "came before a returned record with its key");
    key.next_at_ns = detail::now_ns();
    key.next = delivery.record.offset + 1;
  }

  Entry& entry(Mark mark) noexcept { return entries_[mark.publisher][mark.sequence]; }
  template <class Wanted>
  std::uint64_t count_those(Wanted&& wanted) const noexcept {
    std::uint64_t count = 0;
    for (std::uint32_t publisher = 0; publisher < kPublishers; ++publisher) {
      const auto& entries = entries_[publisher];
      count += static_cast<std::uint64_t>(
          std::count_if(entries.begin(), entries.begin() + count_[publisher], wanted));
    }
    return count;
  }
  void complain_of(Mark mark, const Delivery& delivery, const char* what) noexcept {
    complain("record %u of publisher %u at offset %llu, delivery %u, to process %d: %s",
             mark.sequence, mark.publisher, static_cast<unsigned long long>(delivery.record.offset),
             delivery.deliveries, static_cast<int>(::getpid()), what);
  }

  std::array<std::array<Entry, kRecords>, kPublishers> entries_;
  std::array<std::atomic<std::uint32_t>, kPublishers> count_;  // Records begun.
  std::array<Key, kKeys> keys_;
  std::atomic<std::uint64_t> unnoted_;
  std::atomic<std::uint64_t> again_;
  std::atomic<std::uint32_t> complaint_count_;
  std::array<std::array<char, 160>, 10> complaints_;
};

}  // namespace leat::testing
