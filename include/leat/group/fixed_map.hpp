// Containers that do not allocate once their room is reserved: a list and a small hash table.
//
//     FixedList<ReadyRecord> ready;
//     ready.reserve(256);             // For at most 256 records.
//     ready.push_back(record);
//
//     FixedMap<OwnRecord> mine;
//     mine.reserve(1024);             // For at most 1024 keys.
//     mine.insert(key)->order = 1;    // Any key but ~0.
//     mine.erase(key);
//
// Open addressing; erase() moves later entries up, so there are no tombstones. For one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace leat::inline v0::detail {

template <class Value>
class FixedList {
 public:
  void reserve(std::size_t count) {
    values_ = std::make_unique<Value[]>(count);
    capacity_ = count;
  }
  // The caller has reserved the room. A full list stays as it is.
  [[gnu::always_inline]] void push_back(const Value& value) noexcept {
    if (size_ != capacity_) [[likely]]
      values_[size_++] = value;
  }
  // The same in two steps, to fill the new value in place. The caller knows that there is room.
  Value& spare() noexcept { return values_[size_]; }
  void push_spare() noexcept { ++size_; }
  void resize(std::size_t size) noexcept { size_ = size; }  // Smaller.
  void clear() noexcept { size_ = 0; }
  void swap(FixedList& other) noexcept {
    values_.swap(other.values_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  Value& operator[](std::size_t at) noexcept { return values_[at]; }
  const Value* begin() const noexcept { return values_.get(); }
  const Value* end() const noexcept { return values_.get() + size_; }

 private:
  std::unique_ptr<Value[]> values_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

template <class Value>
class FixedMap {
 public:
  void reserve(std::size_t count) {
    std::size_t size = 8;
    while (size < 2 * count) size *= 2;
    entries_.assign(size, {});
  }
  Value* find(std::uint64_t key) noexcept {
    Entry& entry = entries_[place_of(key)];
    return key != kNone && entry.key == key ? &entry.value : nullptr;
  }
  // The value of the key, which is inserted if it is missing; null if there is no room, or it is ~0.
  Value* insert(std::uint64_t key) noexcept {
    if (key == kNone) return nullptr;
    Entry& entry = entries_[place_of(key)];
    if (entry.key != key) {
      if (2 * count_ >= entries_.size()) return nullptr;
      entry = {key, {}};
      ++count_;
    }
    return &entry.value;
  }
  void erase(std::uint64_t key) noexcept {
    std::size_t hole = place_of(key);
    if (entries_[hole].key != key) return;
    --count_;
    const std::size_t mask = entries_.size() - 1;
    for (std::size_t at = (hole + 1) & mask; entries_[at].key != kNone; at = (at + 1) & mask) {
      // Moves up, unless its home lies behind the hole: a search from its home would end there.
      if (((at - home_of(entries_[at].key)) & mask) < ((at - hole) & mask)) continue;
      entries_[hole] = entries_[at];
      hole = at;
    }
    entries_[hole].key = kNone;
  }
  void clear() noexcept {
    if (count_ != 0) std::fill(entries_.begin(), entries_.end(), Entry{});
    count_ = 0;
  }
  std::size_t size() const noexcept { return count_; }

  // Calls visit(key, value) for each entry. visit may erase its entry; another entry may then be
  // visited twice.
  template <class Visit>
  void each(Visit&& visit) {
    for (std::size_t at = 0; at < entries_.size();) {
      const std::uint64_t key = entries_[at].key;
      if (key != kNone) visit(key, entries_[at].value);
      if (entries_[at].key == key) ++at;  // Otherwise another entry moved here.
    }
  }

 private:
  static constexpr std::uint64_t kNone = ~0ULL;
  struct Entry {
    std::uint64_t key = kNone;
    Value value{};
  };
  std::size_t home_of(std::uint64_t key) const noexcept {
    return static_cast<std::size_t>(key * 0x9e37'79b9'7f4a'7c15ULL >> 32) & (entries_.size() - 1);
  }
  std::size_t place_of(std::uint64_t key) const noexcept {
    std::size_t at = home_of(key);
    while (entries_[at].key != key && entries_[at].key != kNone)
      at = (at + 1) & (entries_.size() - 1);
    return at;
  }

  std::vector<Entry> entries_;
  std::size_t count_ = 0;
};

}  // namespace leat::inline v0::detail
