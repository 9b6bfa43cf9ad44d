// The oracle of the crash tests and storms: compares what was published with what arrived. If it
// failed, lost, duplicated or damaged records would go unnoticed.
//
//     Ledger   in shared memory: every publisher notes each record before and after publishing it
//     Trail    one subscriber's records and gaps in order of arrival; checks each when it arrives
//     compare(ledger, trail)   the complaints; empty if nothing is lost, duplicated or out of order
//
// A record's value contains its publisher and sequence number; the other
// bytes are computed from these.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "leat/leat.hpp"

namespace leat::testing {

struct Mark {
  std::uint32_t publisher;
  std::uint32_t sequence;
};
inline constexpr std::size_t kMinMessage = 16;

inline std::byte pattern(Mark mark, std::size_t at) noexcept {
  const std::uint32_t mixed = (mark.sequence * 2654435761U) ^ (mark.publisher * 40503U);
  return static_cast<std::byte>((mixed >> (at % 4 * 8)) + at);
}

// Writes the value of `mark`, out.size() >= kMinMessage bytes.
inline void write_message(std::span<std::byte> out, Mark mark) noexcept {
  const auto size = static_cast<std::uint32_t>(out.size());
  std::memcpy(out.data(), &mark, sizeof(mark));
  std::memcpy(out.data() + 8, &size, sizeof(size));
  for (std::size_t i = 12; i < out.size(); ++i) out[i] = pattern(mark, i);
}
inline std::vector<std::byte> make_message(Mark mark, std::size_t size) {
  std::vector<std::byte> message(size < kMinMessage ? kMinMessage : size);
  write_message(message, mark);
  return message;
}
// Nothing if any byte differs from what write_message() wrote.
inline std::optional<Mark> read_message(std::span<const std::byte> value) noexcept {
  if (value.size() < kMinMessage) return std::nullopt;
  Mark mark{};
  std::uint32_t size = 0;
  std::memcpy(&mark, value.data(), sizeof(mark));
  std::memcpy(&size, value.data() + 8, sizeof(size));
  if (size != value.size()) return std::nullopt;
  for (std::size_t i = 12; i < value.size(); ++i) {
    if (value[i] != pattern(mark, i)) return std::nullopt;
  }
  return mark;
}

enum class Fate : std::uint32_t {
  none = 0,
  started,    // publish() was called; if this is the final state, the publisher died there
  published,  // publish() returned the offset
  aborted,    // the publisher aborted the claim; its offset is known
  revoked,    // publish() returned `revoked`: not delivered
  refused,    // publish() returned `full`, `timeout` or similar: nothing was claimed
};

struct LedgerEntry {
  std::uint64_t offset;
  Fate fate;
};

template <std::size_t kPublishers, std::size_t kRecords>
struct LedgerOf {
  std::array<std::array<LedgerEntry, kRecords>, kPublishers> entries;
  std::array<std::atomic<std::uint32_t>, kPublishers> count;  // Entries begun, per publisher.

  // Starts the next record of `publisher`. Call it before publishing.
  Mark begin(std::uint32_t publisher) noexcept {
    const std::uint32_t sequence = count[publisher].load();
    entries[publisher][sequence] = {~0ULL, Fate::started};
    count[publisher].store(sequence + 1);
    return {publisher, sequence};
  }
  void end(Mark mark, Fate fate, std::uint64_t offset = ~0ULL) noexcept {
    entries[mark.publisher][mark.sequence] = {offset, fate};
  }
  void end(Mark mark, const Result<std::uint64_t>& offset) noexcept {
    if (offset) {
      end(mark, Fate::published, *offset);
    } else {
      end(mark, offset.error().code == Errc::revoked ? Fate::revoked : Fate::refused);
    }
  }
  // Undoes begin(), if nothing was claimed. Only for the publisher's latest record.
  void take_back(Mark mark) noexcept { count[mark.publisher].store(mark.sequence); }
  bool is_full(std::uint32_t publisher) const noexcept { return count[publisher] >= kRecords; }
  std::optional<LedgerEntry> find(Mark mark) const noexcept {
    if (mark.publisher >= kPublishers || mark.sequence >= count[mark.publisher].load())
      return std::nullopt;
    return entries[mark.publisher][mark.sequence];
  }
};

class Trail {
 public:
  struct Step {
    bool is_gap = false;
    GapReason reason = GapReason::aborted;
    Mark mark{};
  };

  explicit Trail(std::string name = "trail") : name_{std::move(name)} {}

  void on_record(const Record& record) {
    if (!begin_at(record.offset)) complain("record", record.offset);
    const std::optional<Mark> mark = read_message(record.value);
    if (!mark) {
      complaints_.push_back(name_ + ": content of offset " + std::to_string(record.offset));
    } else {
      check_order(*mark, record.offset);
    }
    steps_.push_back({.mark = mark.value_or(Mark{~0U, ~0U})});
  }
  void on_event(const Event& event) {
    if (!begin_at(event.first)) complain("gap", event.first);
    if (event.count == 0 || event.count > 1'000'000) {
      complaints_.push_back(name_ + ": gap of " + std::to_string(event.count));
      return;
    }
    for (std::uint64_t i = 0; i < event.count; ++i) {
      steps_.push_back({.is_gap = true, .reason = event.reason});
    }
  }

  std::uint64_t first() const noexcept { return first_.value_or(0); }
  std::uint64_t next() const noexcept { return first() + steps_.size(); }
  bool covers(std::uint64_t offset) const noexcept { return offset >= first() && offset < next(); }
  const Step& at(std::uint64_t offset) const { return steps_.at(offset - first()); }
  const std::vector<Step>& steps() const noexcept { return steps_; }
  const std::vector<std::string>& complaints() const noexcept { return complaints_; }
  const std::string& name() const noexcept { return name_; }
  std::uint64_t gaps(GapReason reason) const noexcept {
    std::uint64_t count = 0;
    for (const Step& step : steps_) count += step.is_gap && step.reason == reason ? 1U : 0U;
    return count;
  }

 private:
  bool begin_at(std::uint64_t offset) {
    if (!first_) first_ = offset;
    return offset == next();
  }
  void complain(const char* what, std::uint64_t offset) {
    complaints_.push_back(name_ + ": " + what + " " + std::to_string(offset) + " instead of " +
                          std::to_string(next()));
  }

  void check_order(Mark mark, std::uint64_t offset) {
    if (mark.publisher >= 64) return;  // compare() reports it.
    if (mark.publisher >= last_.size()) last_.resize(mark.publisher + 1, -1);
    if (mark.sequence <= last_[mark.publisher]) {
      complaints_.push_back(name_ + ": record " + std::to_string(mark.sequence) + " of publisher " +
                            std::to_string(mark.publisher) + " at offset " +
                            std::to_string(offset) + ": twice, or not in its publisher's order");
    }
    last_[mark.publisher] = mark.sequence;
  }

  std::string name_;
  std::optional<std::uint64_t> first_;
  std::vector<Step> steps_;
  std::vector<std::int64_t> last_;  // The latest sequence number of each publisher.
  std::vector<std::string> complaints_;
};

// What is wrong with the trail, given what was published; at most 10 lines. Call it when all
// publishers are done. `is_of_it`: which publishers write to the trail's partition.
template <class Ledger>
std::vector<std::string> compare(
    const Ledger& ledger, const Trail& trail,
    const std::function<bool(std::uint32_t)>& is_of_it = [](std::uint32_t) { return true; }) {
  std::vector<std::string> complaints = trail.complaints();
  const auto complain = [&](Mark mark, std::uint64_t offset, const std::string& what) {
    complaints.push_back(trail.name() + ": record " + std::to_string(mark.sequence) +
                         " of publisher " + std::to_string(mark.publisher) + " at offset " +
                         std::to_string(offset) + ": " + what);
  };
  // Every record that arrived was published, at that offset. The trail itself has checked that it
  // arrived once and in order.
  for (std::uint64_t offset = trail.first(); offset < trail.next(); ++offset) {
    const Trail::Step& step = trail.at(offset);
    if (step.is_gap) continue;
    const auto entry = ledger.find(step.mark);
    if (!entry) {
      complain(step.mark, offset, "was never published");
      continue;
    }
    if (!is_of_it(step.mark.publisher)) complain(step.mark, offset, "is of another partition");
    if (entry->fate == Fate::published && entry->offset != offset)
      complain(step.mark, offset, "publish returned another offset");
    if (entry->fate != Fate::published && entry->fate != Fate::started)
      complain(step.mark, offset, "arrived though it was aborted, revoked or refused");
  }
  // Every record whose publish() succeeded arrived, unless the subscriber is
  // lossy and got a gap instead.
  for (std::uint32_t publisher = 0; publisher < ledger.entries.size(); ++publisher) {
    if (!is_of_it(publisher)) continue;
    for (std::uint32_t sequence = 0; sequence < ledger.count[publisher].load(); ++sequence) {
      const Mark mark{publisher, sequence};
      const LedgerEntry entry = *ledger.find(mark);
      if (entry.offset == ~0ULL || !trail.covers(entry.offset)) continue;
      const Trail::Step& step = trail.at(entry.offset);
      if (step.is_gap && step.reason == GapReason::overwritten) continue;
      if (entry.fate == Fate::published && step.is_gap)
        complain(mark, entry.offset,
                 "publish succeeded, but the gap says " + std::string{name_of(step.reason)});
      if (entry.fate == Fate::aborted && (!step.is_gap || step.reason != GapReason::aborted))
        complain(mark, entry.offset, "aborted by its publisher, but there is no such gap");
    }
  }
  if (complaints.size() > 10) complaints.resize(10);
  return complaints;
}

}  // namespace leat::testing
