// What every fallible call of Leat returns: a value, or an Error of 8 bytes.
//
//     leat::Result<leat::Topic> topic = leat::Topic::open("orders");
//     if (!topic) return report(leat::describe(topic.error()));
//     topic->publisher();
//
// The names are a subset of std::expected's, so that C++23 can make Result an alias. Nothing here
// allocates or throws; describe() is for the moment a person reads the error.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "leat/base/assert.hpp"

namespace leat {

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
inline Error last_system_error() noexcept {
  switch (const int number = errno) {
    case ENOENT:
    case ENOTDIR: return {Errc::not_found, number};
    case EEXIST: return {Errc::exists, number};
    case EACCES:
    case EPERM:
    case EROFS: return {Errc::permission, number};
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM: return {Errc::no_space, number};
    case ENOSYS:
    case EOPNOTSUPP: return {Errc::unsupported, number};
    case EINVAL:
    case ENAMETOOLONG: return {Errc::invalid_argument, number};
    default: return {Errc::io_error, number};
  }
}

// One sentence without a full stop: what happened, for people.
inline std::string describe(Error error) {
  const char* text = "unknown error";
  switch (error.code) {
    case Errc::ok: text = "no error"; break;
    case Errc::invalid_argument: text = "invalid argument"; break;
    case Errc::not_found: text = "no such topic"; break;
    case Errc::exists: text = "the topic exists already"; break;
    case Errc::busy: text = "in use by another process"; break;
    case Errc::permission: text = "permission denied"; break;
    case Errc::wrong_format: text = "not a Leat topic of this format version"; break;
    case Errc::corrupt: text = "the topic is corrupt: a check on its shared memory failed"; break;
    case Errc::full: text = "the topic is full"; break;
    case Errc::no_space: text = "no space left for the topic's files"; break;
    case Errc::too_large: text = "the record is larger than the topic allows"; break;
    case Errc::timeout: text = "the deadline passed"; break;
    case Errc::stopped: text = "stopped on request"; break;
    case Errc::deleted: text = "the topic was deleted"; break;
    case Errc::forked:
      text = "this handle belongs to the parent process: open a new one after fork";
      break;
    case Errc::revoked:
      text = "the claim was revoked because its owner did not run for too long";
      break;
    case Errc::would_deadlock:
      text = "the topic is full and only this very thread could make room";
      break;
    case Errc::not_allowed: text = "the topic's options do not allow this"; break;
    case Errc::too_many: text = "every participant slot of the topic is in use"; break;
    case Errc::unsupported: text = "not supported by this kernel or file system"; break;
    case Errc::in_flight_full:
      text = "this member holds as many records as its group allows: acknowledge some";
      break;
    case Errc::redelivery_full:
      text = "more records came back, or wait for their key, than the group has room for";
      break;
    case Errc::not_held: text = "this member does not hold that record (any more)"; break;
    case Errc::lease_lost: text = "the record was held for longer than the group's lease"; break;
    case Errc::closed: text = "the consumer group was deleted"; break;
    case Errc::buffer_too_small: text = "the buffer is too small for the record"; break;
    case Errc::io_error: text = "a system call failed"; break;
  }
  std::string sentence = text;
  if (error.code == Errc::too_large && error.system_error != 0) {
    return sentence + ": at most " + std::to_string(error.system_error) + " bytes";
  }
  if (error.code == Errc::buffer_too_small) {
    return sentence + ": it needs " + std::to_string(error.system_error) + " bytes";
  }
  if (error.system_error != 0) {
    sentence += " (";
    sentence += std::strerror(error.system_error);
    sentence += ')';
  }
  return sentence;
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) noexcept(std::is_nothrow_move_constructible_v<T>) : has_value_{true} {
    ::new (static_cast<void*>(&value_)) T(std::move(value));
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

  Result(Result&& other) noexcept : has_value_{other.has_value_} {
    if (has_value_) {
      ::new (static_cast<void*>(&value_)) T(std::move(other.value_));
    } else {
      error_ = other.error_;
    }
  }
  Result& operator=(Result&& other) noexcept {
    if (this != &other) {
      this->~Result();
      ::new (static_cast<void*>(this)) Result(std::move(other));
    }
    return *this;
  }
  ~Result() {
    if (has_value_) value_.~T();
  }

  bool has_value() const noexcept { return has_value_; }
  explicit operator bool() const noexcept { return has_value_; }

  // Only with a value; asking an error for its value is a bug and ends the process.
  T& value() noexcept { return checked(); }
  const T& value() const noexcept { return const_cast<Result*>(this)->checked(); }
  T& operator*() noexcept { return checked(); }
  const T& operator*() const noexcept { return value(); }
  T* operator->() noexcept { return &checked(); }
  const T* operator->() const noexcept { return &value(); }

  // Errc::ok when there is a value.
  Error error() const noexcept { return has_value_ ? Error{} : error_; }

 private:
  T& checked() noexcept {
    LEAT_ASSERT(has_value_);
    return value_;
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

}  // namespace leat
