// What every fallible call of Leat returns: a value, or an Error of 8 bytes.
//
//     leat::Result<leat::Topic> topic = leat::Topic::open("orders");
//     if (!topic) return report(leat::describe(topic.error()));
//     topic->publisher();
//
// The names are a subset of std::expected's, so that C++23 can make Result an alias. Nothing here
// allocates or throws; describe() is for the moment a person reads the error.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace leat::inline v0 {

enum class Errc : std::int32_t {
  ok = 0,
  invalid_argument,  // a name, size or combination of options that can't be
  not_found,         // no topic of that name
  exists,            // a topic of that name is there already
  busy,              // somebody else holds what only one may hold
  permission,        // the operating system refused
  wrong_format,      // not a Leat topic, or of another format version
  corrupt,           // a check on shared memory failed
  full,              // no room in the log under policy `fail`, or for try_ calls
  no_space,          // the file system is full
  too_large,         // over max_record_size()
  timeout,           // the deadline passed
  stopped,           // the stop token asked for it
  deleted,           // the topic was deleted while attached
  forked,            // this handle was inherited through fork(); open a new one
  revoked,           // this claim was given up by others while its owner did not run
  would_deadlock,    // the room is held only by subscribers and members of the calling thread
  not_allowed,       // the topic's options exclude it
  too_many,          // every participant slot is taken by a live process
  unsupported,       // the kernel or file system lacks something
  in_flight_full,    // this member holds as many records as its group allows
  redelivery_full,   // the group has no room for more records that come back: it claims none
  not_held,          // the member does not hold this record (any more)
  lease_lost,        // the record was held for longer than the group's lease, and taken away
  closed,            // the consumer group was deleted
  buffer_too_small,  // the record stays; Error.system_error is its size
  io_error,          // any other failed system call
};

// Code and errno (0 where no system call failed). With too_large: how many bytes are allowed; with
// buffer_too_small: how many are needed.
struct Error {
  Errc code = Errc::ok;
  std::int32_t system_error = 0;
  friend bool operator==(const Error& error, Errc wanted) noexcept { return error.code == wanted; }
};
static_assert(sizeof(Error) == 8);

// The error of the system call that just failed: maps errno to the code that fits best.
Error last_system_error() noexcept;

// One sentence without a full stop: what happened, for people.
std::string describe(Error error);

namespace detail {
// Ends the process. `file` may be null.
[[noreturn]] void used_without_value(Error error, const char* file, int line) noexcept;
}  // namespace detail

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) noexcept(std::is_nothrow_move_constructible_v<T>) : has_value_{true} {
    std::construct_at(&value_, std::move(value));
  }
  Result(Error error) noexcept : error_{error}, has_value_{false} {}
  Result(Errc code) noexcept : error_{code, 0}, has_value_{false} {}

  // Trivial for trivial values, so that a Result<std::uint64_t> stays in registers.
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

  // Only with a value; asking an error for its value is a bug, and ends the process with the error's
  // sentence. value() names the caller, too.
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

  // Errc::ok when there is a value.
  Error error() const noexcept { return has_value_ ? Error{} : error_; }

 private:
  // Not by assigning values: a Claim, for one, can't be assigned.
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

// Success without a value.
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
