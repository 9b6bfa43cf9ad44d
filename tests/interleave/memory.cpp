// The memory of the model (see memory.hpp): a load may return any store that the loading thread
// does not know to be outdated.
#include "memory.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

namespace leat::inline v0::detail::model {
namespace {

bool acquires(std::memory_order order) noexcept {
  return order == std::memory_order_acquire || order == std::memory_order_acq_rel ||
         order == std::memory_order_seq_cst;
}
bool releases(std::memory_order order) noexcept {
  return order == std::memory_order_release || order == std::memory_order_acq_rel ||
         order == std::memory_order_seq_cst;
}
std::uint64_t place_of(const ThreadView& thread, std::memory_order order) noexcept {
  return order == std::memory_order_seq_cst ? thread.now.sc_place : 0;
}
std::uint64_t word_at(std::uintptr_t address) noexcept {
  std::uint64_t value;
  std::memcpy(&value, reinterpret_cast<const void*>(address & ~std::uintptr_t{7}), sizeof(value));
  return value;
}
bool touches_half(std::uint8_t bytes, std::size_t half) noexcept {
  return (bytes & (half == 0 ? 0x0f : 0xf0)) != 0;
}

}  // namespace

void View::raise(std::size_t half, std::uint32_t time) {
  if (half >= seen_.size()) seen_.resize(half + 1, 0);
  seen_[half] = std::max(seen_[half], time);
}

void View::join(const View& other) {
  sc_place = std::max(sc_place, other.sc_place);
  if (seen_.size() < other.seen_.size()) seen_.resize(other.seen_.size(), 0);
  for (std::size_t i = 0; i < other.seen_.size(); ++i)
    seen_[i] = std::max(seen_[i], other.seen_[i]);
}

void Memory::reset() {
  seq_cst_ = {};
  sc_last_place_ = 0;
  used_ = 0;
  table_.assign(1024, {});
  if (ranges_.empty()) files_.clear();
}

// ---- Locations ----------------------------------------------------------------------------------

std::uint64_t Memory::number_of_file(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) std::abort();
  const std::pair<std::uint64_t, std::uint64_t> file{status.st_dev, status.st_ino};
  const auto found = std::find(files_.begin(), files_.end(), file);
  const auto number = static_cast<std::uint64_t>(found - files_.begin());
  if (found == files_.end()) files_.push_back(file);
  return number;
}
std::uint64_t Memory::key_of_file(int fd) {
  return (std::uint64_t{1} << 63) | (number_of_file(fd) << 40);
}

void Memory::add_mapping(const void* data, std::size_t size, int fd) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  ranges_.push_back({begin, begin + size, number_of_file(fd)});
}

bool Memory::remove_mapping(const void* data) {
  return std::erase_if(ranges_, [&](const Range& range) {
           return range.begin == reinterpret_cast<std::uintptr_t>(data);
         }) != 0;
}

void Memory::unmap_all() {
  for (const Range& range : ranges_) {
    ::munmap(reinterpret_cast<void*>(range.begin), range.end - range.begin);
  }
  ranges_.clear();
  files_.clear();
}

std::uint64_t Memory::key_of(const void* address) {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    if (number < ranges_[i].begin || number >= ranges_[i].end) continue;
    if (i != 0) std::swap(ranges_[i], ranges_[i - 1]);  // Frequently used ranges move forward.
    const Range& range = ranges_[i == 0 ? 0 : i - 1];
    return (std::uint64_t{1} << 63) | (range.file << 40) | (number - range.begin);
  }
  return number;
}

std::size_t Memory::location_of(std::uint64_t key, std::uint64_t initial) {
  const auto slot_of = [&](std::uint64_t wanted) {
    std::size_t slot = (wanted * 0x9e37'79b9'7f4a'7c15ULL) >> 32;
    for (;; ++slot) {
      auto& entry = table_[slot & (table_.size() - 1)];
      if (entry.first == 0 || entry.first == wanted) return &entry;
    }
  };
  auto* entry = slot_of(key + 1);
  if (entry->first != 0) return entry->second;
  if (2 * used_ >= table_.size()) {
    auto old = std::move(table_);
    table_.assign(2 * old.size(), {});
    for (const auto& moved : old) {
      if (moved.first != 0) *slot_of(moved.first) = moved;
    }
    entry = slot_of(key + 1);
  }
  *entry = {key + 1, used_};
  if (used_ == locations_.size()) locations_.emplace_back();
  Location& location = locations_[used_];
  location.first = 0;
  location.floor[0] = location.floor[1] = 0;
  location.history.clear();
  location.history.push_back({initial, 0xff, nullptr, 0});
  return used_++;
}

Memory::Access Memory::find(const void* address, std::size_t size) {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  const unsigned byte = number & 7;
  const std::uint64_t real = word_at(number);
  const std::uint64_t value_mask =
      size == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * size)) - 1;
  const auto bytes = static_cast<std::uint8_t>(((1U << size) - 1) << byte);
  const Access access{location_of(key_of(address) & ~std::uint64_t{7}, real), 8 * byte, bytes,
                      value_mask};

  Location& location = locations_[access.location];
  if (access.extract(real) != access.extract(location.history.back().value)) {
    append(access, access.extract(real), nullptr, 0);  // It was written outside the model.
    for (const std::size_t half : {std::size_t{0}, std::size_t{1}}) {
      if (touches_half(bytes, half)) location.floor[half] = location.last();
    }
  }
  return access;
}

// The oldest store this thread may read.
std::uint32_t Memory::oldest_for(const ThreadView& thread, const Access& access,
                                 bool seq_cst) const {
  const Location& location = locations_[access.location];
  std::uint32_t oldest = location.first;
  for (const std::size_t half : {std::size_t{0}, std::size_t{1}}) {
    if (!touches_half(access.bytes, half)) continue;
    oldest = std::max({oldest, location.floor[half], thread.now.at(2 * access.location + half)});
  }
  if (!seq_cst) return oldest;
  for (std::uint32_t time = location.last(); time > oldest; --time) {
    const Message& message = location.history[time - location.first];
    // A load that follows this store in the total order cannot read an older one.
    if (message.sc_place != 0 && message.sc_place <= thread.now.sc_place &&
        (message.bytes & access.bytes) != 0) {
      return time;
    }
  }
  return oldest;
}

// Like a full fence: everything before it in the total order is visible to what follows.
void Memory::enter_sc_order(ThreadView& thread) {
  thread.now.join(seq_cst_);
  thread.now.sc_place = ++sc_last_place_;
}

void Memory::see(View& view, const Access& access, std::uint32_t time) {
  for (const std::size_t half : {std::size_t{0}, std::size_t{1}}) {
    if (touches_half(access.bytes, half)) view.raise(2 * access.location + half, time);
  }
}

// Joins the views of the stores whose bytes a load at `time` returns.
void Memory::meet(View& view, const Access& access, std::uint32_t time) {
  Location& location = locations_[access.location];
  unsigned missing = access.bytes;
  for (;; --time) {
    const Message& message = location.at(time);
    if ((message.bytes & missing) != 0 && message.view != nullptr) view.join(*message.view);
    missing &= ~unsigned{message.bytes};
    if (missing == 0 || time == location.first) return;
  }
}

// `value` is the value of the accessed bytes only.
void Memory::append(const Access& access, std::uint64_t value, SharedView view,
                    std::uint64_t sc_place) {
  Location& location = locations_[access.location];
  const std::uint64_t mask = access.value_mask << access.shift;
  const std::uint64_t word = (location.history.back().value & ~mask) | (value << access.shift);
  location.history.push_back({word, access.bytes, std::move(view), sc_place});
  if (location.history.size() < 2 * kHistory) return;

  // Forgets the older half. Their views are merged into that of the first store that is kept.
  View forgotten;
  bool any = false;
  for (std::size_t i = 0; i <= kHistory; ++i) {
    if (location.history[i].view == nullptr) continue;
    forgotten.join(*location.history[i].view);
    any = true;
  }
  Message& oldest = location.history[kHistory];
  if (oldest.bytes != 0xff && any) oldest.view = std::make_shared<const View>(std::move(forgotten));
  oldest.bytes = 0xff;
  location.history.erase(location.history.begin(), location.history.begin() + kHistory);
  location.first += kHistory;
}

// ---- Operations ---------------------------------------------------------------------------------

std::uint64_t Memory::load(ThreadView& thread, const void* address, std::size_t size,
                           std::memory_order order) {
  const Access access = find(address, size);
  const bool seq_cst = order == std::memory_order_seq_cst;
  Location& location = locations_[access.location];
  const std::uint32_t oldest = oldest_for(thread, access, seq_cst);

  std::uint32_t candidates[2 * kHistory];
  std::size_t count = 0;
  for (std::uint32_t time = location.last();; --time) {
    if (time <= oldest || (location.at(time).bytes & access.bytes) != 0) candidates[count++] = time;
    if (time <= oldest) break;
  }
  last_age_ = choose_age_(count);
  const std::uint32_t time = candidates[last_age_];

  meet(acquires(order) ? thread.now : thread.pending, access, time);
  see(thread.now, access, time);
  if (seq_cst) thread.now.sc_place = std::max(thread.now.sc_place, location.at(time).sc_place);
  return access.extract(location.at(time).value);
}

// The view that a store carries. `continues` means that it is part of the
// previous store's release sequence.
SharedView Memory::view_for_store(ThreadView& thread, const Access* accesses, std::size_t count,
                                  bool release, bool continues) {
  if (!release && !continues) return thread.released;
  View view;
  if (release) {
    view = thread.now;
  } else if (thread.released != nullptr) {
    view = *thread.released;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t last = locations_[accesses[i].location].last();
    if (continues) meet(view, accesses[i], last);
    if (release) see(view, accesses[i], last + 1);  // The store itself.
  }
  return std::make_shared<const View>(std::move(view));
}

void Memory::store(ThreadView& thread, void* address, std::size_t size, std::uint64_t value,
                   std::memory_order order) {
  const Access access = find(address, size);
  if (order == std::memory_order_seq_cst) enter_sc_order(thread);
  append(access, value & access.value_mask,
         view_for_store(thread, &access, 1, releases(order), false), place_of(thread, order));
  see(thread.now, access, locations_[access.location].last());
  if (order == std::memory_order_seq_cst) seq_cst_.join(thread.now);
  std::memcpy(address, &value, size);
}

std::uint32_t Memory::read_latest(ThreadView& thread, const Access& access, bool acquire) {
  const std::uint32_t last = locations_[access.location].last();
  meet(acquire ? thread.now : thread.pending, access, last);
  see(thread.now, access, last);
  return last;
}

std::uint64_t Memory::update(
    ThreadView& thread, void* address, std::size_t size, std::memory_order order,
    const std::function<std::optional<std::uint64_t>(std::uint64_t)>& change) {
  const Access access = find(address, size);
  if (order == std::memory_order_seq_cst) enter_sc_order(thread);
  const std::uint32_t last = read_latest(thread, access, acquires(order));
  const std::uint64_t old = access.extract(locations_[access.location].at(last).value);
  if (const auto value = change(old)) {
    append(access, *value & access.value_mask,
           view_for_store(thread, &access, 1, releases(order), true), place_of(thread, order));
    see(thread.now, access, locations_[access.location].last());
    std::memcpy(address, &*value, size);
  }
  if (order == std::memory_order_seq_cst) seq_cst_.join(thread.now);
  return old;
}

bool Memory::compare_exchange_pair(ThreadView& thread, std::uint64_t* pair,
                                   const std::uint64_t (&expected)[2],
                                   const std::uint64_t (&desired)[2], std::memory_order order) {
  const Access accesses[2] = {find(&pair[0], 8), find(&pair[1], 8)};
  if (order == std::memory_order_seq_cst) enter_sc_order(thread);
  bool equal = true;
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const std::uint32_t last = read_latest(thread, accesses[i], acquires(order));
    equal = equal && locations_[accesses[i].location].at(last).value == expected[i];
  }
  if (equal) {
    const SharedView view = view_for_store(thread, accesses, 2, releases(order), true);
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
      append(accesses[i], desired[i], view, place_of(thread, order));
      see(thread.now, accesses[i], locations_[accesses[i].location].last());
      pair[i] = desired[i];
    }
  }
  if (order == std::memory_order_seq_cst) seq_cst_.join(thread.now);
  return equal;
}

void Memory::fence(ThreadView& thread, std::memory_order order) {
  if (acquires(order)) thread.now.join(thread.pending);
  if (order == std::memory_order_seq_cst) {
    enter_sc_order(thread);
    seq_cst_.join(thread.now);
  }
  if (releases(order)) thread.released = std::make_shared<const View>(thread.now);
}

void Memory::see_everything(ThreadView& thread) {
  thread.now.sc_place = sc_last_place_;
  for (std::size_t i = 0; i < used_; ++i) {
    thread.now.raise(2 * i, locations_[i].last());
    thread.now.raise(2 * i + 1, locations_[i].last());
  }
}

std::uint64_t Memory::latest(const void* address, std::size_t size) {
  const Access access = find(address, size);
  return access.extract(locations_[access.location].history.back().value);
}

}  // namespace leat::inline v0::detail::model
