// What the functions of leat.h share: the objects behind their handles, and how they treat errors,
// options, times and bytes. docs/internals/capi.md says why they look like this.
//
//     int32_t leat_x_do(leat_x* x, int64_t timeout_ns, int32_t* detail) {
//       if (x == nullptr || !is_timeout(timeout_ns)) return LEAT_ERR_INVALID_ARGUMENT;
//       return guarded(detail, [&] { return code_of(x->object.do_it(deadline_of(timeout_ns)), detail); });
//     }
//
// A publisher, subscriber or member is checked for fork by the C++ object itself. Topics and groups, and
// functions that only look, check here.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "capi/leat.h"
#include "leat/leat.hpp"

// ---- The objects --------------------------------------------------------------------------------

struct leat_topic {
  leat::Topic topic;
  std::uint32_t fork_generation = leat::detail::fork_generation();
};

struct leat_publisher {
  leat::Publisher publisher;
  std::uint32_t partitions;
  std::optional<leat::Claim> claim = {};  // Behind the publisher, which must outlive it.
  std::uint64_t claim_id = 0;             // Of the last claim.
  std::uint32_t fork_generation = leat::detail::fork_generation();
};

struct leat_subscriber {
  leat::Subscriber subscriber;
  std::uint32_t partitions;
  std::uint32_t fork_generation = leat::detail::fork_generation();
};

struct leat_group {
  leat::Group group;
  std::uint32_t partitions;
  std::uint32_t fork_generation = leat::detail::fork_generation();
};

struct leat_member {
  std::vector<leat::Event> gaps = {};         // Found, and not stored in an array yet.
  std::vector<leat::Delivery> received = {};  // Likewise; empty between calls, unless one failed.
  std::vector<leat::Delivery> named = {};     // By acknowledge_some().
  leat::Member member;
  std::uint32_t partitions;
  std::uint32_t fork_generation = leat::detail::fork_generation();
};

namespace leat::capi {

template <class Handle>
bool is_forked(const Handle& handle) noexcept {
  return handle.fork_generation != leat::detail::fork_generation();
}

// ---- Errors -------------------------------------------------------------------------------------

inline std::int32_t failed(Error error, std::int32_t* detail) noexcept {
  if (detail != nullptr) *detail = error.system_error;
  return static_cast<std::int32_t>(error.code);
}
template <class T>
std::int32_t code_of(const Result<T>& result, std::int32_t* detail) noexcept {
  if (result) [[likely]]
    return LEAT_OK;
  return failed(result.error(), detail);
}
// Stores the value too, if it is wanted.
template <class T, class Out>
std::int32_t code_of(const Result<T>& result, Out* value, std::int32_t* detail) noexcept {
  if (!result) [[unlikely]]
    return failed(result.error(), detail);
  if (value != nullptr) *value = static_cast<Out>(*result);
  return LEAT_OK;
}

// The code for the exception that is being handled.
[[gnu::cold]] std::int32_t what_was_thrown(std::int32_t* detail) noexcept;

// Calls `call` and lets no exception out.
template <class Call>
[[gnu::always_inline]] inline std::int32_t guarded(std::int32_t* detail, Call&& call) {
  try {
    return call();
  } catch (...) {
    return what_was_thrown(detail);
  }
}

// Deletes a handle. Twice is an error, because the first time stores null.
template <class Handle>
std::int32_t close(Handle** handle) {
  if (handle == nullptr || *handle == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  return guarded(nullptr, [&] {
    delete std::exchange(*handle, nullptr);
    return LEAT_OK;
  });
}

// Any thread, while the handle is open.
template <class Handle, class Object>
std::int32_t stop_waits(Handle* handle, Object Handle::*object) noexcept {
  if (handle == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  if (is_forked(*handle)) return LEAT_ERR_FORKED;
  (handle->*object).stop_waits();
  return LEAT_OK;
}
template <class Handle, class Object>
std::int32_t resume_waits(Handle* handle, Object Handle::*object) noexcept {
  if (handle == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  if (is_forked(*handle)) return LEAT_ERR_FORKED;
  (handle->*object).resume_waits();
  return LEAT_OK;
}
template <class Handle, class Object>
std::int32_t waits_are_stopped(Handle* handle, Object Handle::*object,
                               std::uint32_t* is_stopped) noexcept {
  if (handle == nullptr || is_stopped == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  if (is_forked(*handle)) return LEAT_ERR_FORKED;
  *is_stopped = (handle->*object).waits_are_stopped() ? 1 : 0;
  return LEAT_OK;
}

// ---- Times, flags and places --------------------------------------------------------------------

inline bool is_timeout(std::int64_t ns) noexcept { return ns >= LEAT_FOREVER; }
inline Deadline deadline_of(std::int64_t ns) noexcept {
  if (ns == 0) return Deadline::immediate();
  if (ns == LEAT_FOREVER || ns == INT64_MAX) return Deadline::never();
  return Deadline{std::chrono::nanoseconds{ns}};
}

// Whether each of these numbers is 0 or 1.
template <class... Flag>
bool are_flags(Flag... flag) noexcept {
  return ((flag <= 1) && ...);
}

inline std::optional<std::uint32_t> partition_of(std::uint32_t partition) noexcept {
  if (partition == LEAT_ANY_PARTITION) return std::nullopt;
  return partition;
}

inline std::optional<From> from_of(std::uint32_t from, std::uint64_t value) noexcept {
  switch (from) {
    case LEAT_FROM_END: return From::end;
    case LEAT_FROM_BEGINNING: return From::beginning;
    case LEAT_FROM_OFFSET: return From::offset(value);
    case LEAT_FROM_LAST: return From::last(value);
    case LEAT_FROM_TIME:
      if (value > INT64_MAX) return std::nullopt;
      return From::time_ms(static_cast<std::int64_t>(value));
    default: return std::nullopt;
  }
}

// False: no such stage.
inline bool read_stage(std::uint32_t stage, std::optional<Stage>& into) noexcept {
  if (stage == LEAT_STAGE_COMMITTED) into = Stage::committed;
  if (stage == LEAT_STAGE_DURABLE) into = Stage::durable;
  return stage <= LEAT_STAGE_DURABLE;
}

// ---- Options ------------------------------------------------------------------------------------

// Copies options into `into`, which holds the defaults. Programs of another version have structs of
// another size: what theirs lack keeps its default, and what this library does not know must be 0.
template <class Options>
std::int32_t read_options(const Options* given, Options& into) noexcept {
  static_assert(std::is_trivially_copyable_v<Options>);
  if (given == nullptr) return LEAT_OK;
  const std::uint32_t size = given->size;
  if (size < sizeof(size)) return LEAT_ERR_INVALID_ARGUMENT;
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (std::size_t i = sizeof(Options); i < size; ++i) {
    if (bytes[i] != 0) return LEAT_ERR_UNSUPPORTED;
  }
  std::memcpy(&into, bytes, std::min<std::size_t>(size, sizeof(Options)));
  return LEAT_OK;
}

// The same for results: fills as much of `into` as the caller has.
template <class Info>
void write_info(const Info& info, Info* into) noexcept {
  const std::uint32_t size = into->size;
  auto* bytes = reinterpret_cast<unsigned char*>(into);
  std::memcpy(bytes, &info, std::min<std::size_t>(size, sizeof(Info)));
  if (size > sizeof(Info)) std::memset(bytes + sizeof(Info), 0, size - sizeof(Info));
  into->size = size;
}

// ---- Bytes and texts ----------------------------------------------------------------------------

inline constexpr std::uint64_t kMaxBytes =
    UINT32_MAX;  // More than any record: sums of sizes are exact.
inline constexpr std::uint64_t kMaxText = 1 << 20;  // More than any path.

// Whether there are bytes at an address that has none.
inline bool is_nowhere(const void* data, std::uint64_t size) noexcept {
  return data == nullptr && size != 0;
}
inline bool is_nowhere(const leat_bytes& bytes) noexcept {
  return is_nowhere(bytes.data, bytes.size);
}

// False: it is no text. Copied, because the library wants a std::string.
inline bool read_text(const void* data, std::uint64_t size, std::string& into) {
  if (is_nowhere(data, size)) return false;
  const auto* text = static_cast<const char*>(data);
  if (size == LEAT_TEXT) size = std::strlen(text);
  if (size > kMaxText) return false;
  if (size != 0) into.assign(text, size);
  return into.find('\0') == std::string::npos;
}
inline bool read_text(const leat_bytes& bytes, std::string& into) {
  return read_text(bytes.data, bytes.size, into);
}

// A name of a topic or group. A broker's topic, with an address, is for later.
inline std::int32_t read_name(const char* name, std::uint64_t size, std::string& into) {
  if (name == nullptr || !read_text(name, size, into)) return LEAT_ERR_INVALID_ARGUMENT;
  return into.find("://") == std::string::npos ? LEAT_OK : LEAT_ERR_UNSUPPORTED;
}

// Gives a text to a caller.
inline std::int32_t write_text(std::string_view text, char* buffer, std::uint64_t capacity,
                               std::uint64_t* size) noexcept {
  *size = text.size();
  if (text.size() > capacity) return LEAT_ERR_BUFFER_TOO_SMALL;
  if (!text.empty()) std::memcpy(buffer, text.data(), text.size());
  return LEAT_OK;
}
inline bool is_text_room(const char* buffer, std::uint64_t capacity,
                         const std::uint64_t* size) noexcept {
  return size != nullptr && !is_nowhere(buffer, capacity);
}
// Each followed by a line feed.
inline std::string lines_of(std::vector<std::string>& names) {
  std::sort(names.begin(), names.end());
  std::string lines;
  for (const std::string& name : names) (lines += name) += '\n';
  return lines;
}

// ---- Records ------------------------------------------------------------------------------------

static_assert(sizeof(leat_record) == 32 && sizeof(leat_delivery) == 64);
static_assert(detail::Geometry::kMaxPartitions <= UINT16_MAX);

// The key and the headers lie before the value (leat/format/wire.hpp), so their sizes suffice.
[[gnu::always_inline]] inline void put_record(leat_record& to, const Record& from) noexcept {
  to.value = reinterpret_cast<const std::uint8_t*>(from.value.data());
  to.offset = from.offset;
  to.value_size = static_cast<std::uint32_t>(from.value.size());
  to.key_size = static_cast<std::uint32_t>(from.key.size());
  const auto headers_size = static_cast<std::uint32_t>(from.headers.encoded().size());
  to.headers_size = headers_size;
  to.partition = static_cast<std::uint16_t>(from.partition);
  to.flags = static_cast<std::uint16_t>((from.has_key ? LEAT_RECORD_HAS_KEY : 0) |
                                        (from.timestamp_ms != -1 ? LEAT_RECORD_HAS_TIMESTAMP : 0) |
                                        (headers_size != 0 ? LEAT_RECORD_HAS_HEADERS : 0));
}
inline void put_gap(leat_record& to, const Event& gap) noexcept {
  to.value = nullptr;
  to.offset = gap.first;
  to.value_size = static_cast<std::uint32_t>(gap.count);
  to.key_size = static_cast<std::uint32_t>(gap.count >> 32);
  to.headers_size = static_cast<std::uint32_t>(gap.reason);
  to.partition = static_cast<std::uint16_t>(gap.partition);
  to.flags = LEAT_RECORD_IS_GAP;
}

}  // namespace leat::capi
