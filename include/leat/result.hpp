// Result<T>, the return type of every call that can fail: a value, or an Error of 8 bytes.
//
//     leat::Result<leat::Topic> topic = leat::Topic::open("orders");
//     if (!topic) return report(leat::describe(topic.error()));
//     topic->publisher();
//
// The member names are a subset of std::expected's, so that a later C++ standard can make Result an
// alias of it. Nothing here allocates or throws, except describe(), which makes text for users.
#pragma once

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "leat/base/config.hpp"

namespace leat::inline v0 {

// Error codes. The comment of each function lists the codes that it returns. The numbers never change: every client
// knows them.
enum class Errc : std::int32_t {
  ok = 0,
  invalid_argument = 1,  // a name, size or combination of options that is not possible
  not_found = 2,         // no topic (or group) of that name
  exists = 3,            // the name is already taken
  busy = 4,        // another process or handle has what only one may have; or a claim is still open
  permission = 5,  // the operating system denied access
  wrong_format = 6,     // not a Leat topic, or one of another format version
  corrupt = 7,          // a check on shared memory failed: it was overwritten
  full = 8,             // no room in the topic, and the policy or the deadline forbids waiting
  no_space = 9,         // no room for files, or the archiver cannot write them: Error::system_error
  too_large = 10,       // larger than max_record_size(); Error::system_error is the limit in bytes
  timeout = 11,         // the deadline passed
  stopped = 12,         // a stop token, a descriptor or stop_waits() ended the wait
  deleted = 13,         // the topic was deleted
  forked = 14,          // the handle was inherited through fork(); open a new one in the child
  revoked = 15,         // others gave up this claim because its owner did not run for too long
  would_deadlock = 16,  // only subscribers and members of the calling thread could make room
  not_allowed = 17,     // CSimpleIPC only: the connection point was made with preAllocate
  too_many = 18,        // all participant slots, groups or seats are in use
  unsupported = 19,  // the kernel or file system lacks a feature, or (ENOENT) /proc is not mounted
  in_flight_full = 20,  // the member holds as many records as its group allows: acknowledge some
  redelivery_full =
      21,  // the group has no room for more returned records, so it claims no new ones
  not_in_flight =
      22,  // the member does not hold this record, or no longer; in C also: a settled claim
  lease_lost = 23,        // the record was held for longer than the group's lease and taken away
  closed = 24,            // the consumer group was deleted
  buffer_too_small = 25,  // the record was not consumed; Error::system_error is its size in bytes
  io_error = 26,          // another system call failed; Error::system_error is its errno
  read_only = 27,         // durable topics: writing to disk has failed; nothing more is published
  not_durable = 28,       // the record is published, but not known to be on stable storage
  expired = 29,  // durable topics: the group's next record was deleted (GroupOptions::on_expired)
  interrupted = 30,         // a signal handler ran during an `interruptible` wait
  no_memory = 31,           // the process could not get memory
  needs_durable = 32,       // the topic is not durable
  needs_timestamps = 33,    // a position is a time, and the topic has no timestamps
  needs_growing = 34,       // the topic has another policy than grow
  not_with_overwrite = 35,  // policy overwrite: no groups and no gating subscribers
  not_with_durable = 36,    // an option that a durable topic cannot have
};

// An error code and, if a system call failed, its errno; otherwise 0. With too_large,
// `system_error` is the number of bytes allowed; with buffer_too_small, the number needed.
struct Error {
  Errc code = Errc::ok;
  std::int32_t system_error = 0;
  friend bool operator==(const Error& error, Errc wanted) noexcept { return error.code == wanted; }
};
static_assert(sizeof(Error) == 8);

// The error of the system call that just failed: maps errno to the closest code.
Error last_system_error() noexcept;

// Describes an error for users: one sentence, without a full stop.
std::string describe(Error error);

namespace detail {
// Of calls that need /proc, where it is not mounted.
inline constexpr Error kNoProc{Errc::unsupported, ENOENT};

// Prints the error and aborts. `file` may be null.
[[noreturn]] void used_without_value(Error error, const char* file, int line) noexcept;
}  // namespace detail

// A value, or an Error. Move-only; converts implicitly from a value, an Error or an Errc.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) noexcept(std::is_nothrow_move_constructible_v<T>) : has_value_{true} {
    std::construct_at(&value_, std::move(value));
  }
  Result(Error error) noexcept : error_{error}, has_value_{false} {}
  Result(Errc code) noexcept : error_{code, 0}, has_value_{false} {}

  // Trivially movable for trivial values, so that a Result<std::uint64_t> is returned in registers.
  Result(const Result&) = delete;
  Result& operator=(const Result&) = delete;
  Result(Result&&) noexcept
    requires std::is_trivially_copyable_v<T>
  = default;
  Result& operator=(Result&&) noexcept
    requires std::is_trivially_copyable_v<T>
  = default;
  ~Result()
    requires std::is_trivially_destructible_v<T>
  = default;

  Result(Result&& other) noexcept { take(other); }
  Result& operator=(Result&& other) noexcept {
    if (this == &other) return *this;
    drop();
    take(other);
    return *this;
  }
  ~Result() { drop(); }

  bool has_value() const noexcept { return has_value_; }
  explicit operator bool() const noexcept { return has_value_; }

  // Access to the value. Without one this is a bug in the program: prints the error and aborts.
  // value() also prints the caller's file and line.
  T& value(const char* file = __builtin_FILE(), int line = __builtin_LINE()) noexcept {
    if (!has_value_) [[unlikely]]
      detail::used_without_value(error_, file, line);
    return value_;
  }
  const T& value(const char* file = __builtin_FILE(), int line = __builtin_LINE()) const noexcept {
    return const_cast<Result*>(this)->value(file, line);
  }
  T& operator*() noexcept { return value(nullptr, 0); }
  const T& operator*() const noexcept { return value(nullptr, 0); }
  T* operator->() noexcept { return &value(nullptr, 0); }
  const T* operator->() const noexcept { return &value(nullptr, 0); }

  // The error; Errc::ok if there is a value.
  Error error() const noexcept { return has_value_ ? Error{} : error_; }

 private:
  // By construction, because some values (a Claim, for one) cannot be assigned.
  void take(Result& other) noexcept {
    has_value_ = other.has_value_;
    if (has_value_) {
      std::construct_at(&value_, std::move(other.value_));
    } else {
      error_ = other.error_;
    }
  }
  void drop() noexcept {
    if (has_value_) std::destroy_at(&value_);
  }

  union {
    T value_;
    Error error_;
  };
  bool has_value_;
};

// Success without a value, or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() noexcept = default;
  Result(Error error) noexcept : error_{error} {}
  Result(Errc code) noexcept : error_{code, 0} {}
  bool has_value() const noexcept { return error_.code == Errc::ok; }
  explicit operator bool() const noexcept { return has_value(); }
  Error error() const noexcept { return error_; }

 private:
  Error error_;
};

}  // namespace leat::inline v0

#ifndef LEAT_COMPILED
#include "leat/base/result_impl.hpp"
#endif
