// Conversion of errno values to error codes, and of errors to sentences.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>

#include "leat/base/config.hpp"
#include "leat/result.hpp"

namespace leat::inline v0 {

LEAT_INLINE Error last_system_error() noexcept {
  switch (const int number = errno) {
    case ENOENT:
    case ENOTDIR: return {Errc::not_found, number};
    case EEXIST: return {Errc::exists, number};
    case EACCES:
    case EPERM:
    case EROFS: return {Errc::permission, number};
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return {Errc::no_space, number};
    case ENOMEM: return {Errc::no_memory, number};
    case ENOSYS:
    case EOPNOTSUPP: return {Errc::unsupported, number};
    case EINVAL:
    case ENAMETOOLONG: return {Errc::invalid_argument, number};
    default: return {Errc::io_error, number};
  }
}

namespace detail {
// What describe() says, by the number of the code.
// clang-format off
inline constexpr const char* kSentences[] = {
    // From spec/errors.csv, by tools/errors.py: begin
    "no error",
    "invalid argument",
    "no such topic or group",
    "the topic exists already",
    "in use by another process or handle, or by a claim that is still open",
    "permission denied",
    "not a Leat topic of this format version",
    "the topic is corrupt: a check on its shared memory failed",
    "the topic is full",
    "no room for files, or the archiver cannot write them",
    "the record is larger than the topic allows",
    "the deadline passed",
    "stopped on request",
    "the topic was deleted",
    "this handle belongs to the parent process: open a new one after fork",
    "the claim was revoked because its owner did not run for too long",
    "the topic is full and only this very thread could make room",
    "the connection point was made with preAllocate: its expansions are fixed",
    "no slot for another participant or group is free",
    "not supported by this kernel, file system or version of Leat",
    "this member holds as many records as its group allows: acknowledge some",
    "more records came back, or wait for their key, than the group has room for",
    "that record or claim is not in flight (any more)",
    "the record was held for longer than the group's lease",
    "the consumer group was deleted",
    "the buffer is too small for the record",
    "a system call failed",
    "the topic is read-only: writing to its files failed",
    "published, but not on stable storage in time",
    "retention has deleted the group's next record",
    "a signal interrupted the wait",
    "out of memory, or at a limit of memory or of mappings",
    "the topic is in memory only: this needs a durable topic",
    "the topic's records carry no time: this needs a topic with timestamps",
    "the topic's capacity is fixed: this needs a topic with policy grow",
    "the topic overwrites its oldest records: only lossy subscribers can read it",
    "a durable topic cannot have overwrite, grow, retain_all, evict_after, delete_when_unused or in_place",
    // From spec/errors.csv: end
};
// clang-format on

// An archiver may also lack a descriptor, memory or a permission.
inline const char* no_space_sentence(std::int32_t reason) noexcept {
  switch (reason) {
    case ENOSPC:
    case EDQUOT: return "no room for files: no bytes or inodes are free, or a quota is used up";
    case EFBIG: return "a file would be larger than `ulimit -f` or its file system allows";
    default: return "the archiver cannot write the topic's files";
  }
}

// Where the sentence of a code says too little of what this error is; else null.
inline const char* closer_sentence(Error error) noexcept {
  const bool is_system_error = error.system_error != 0;
  switch (error.code) {
    case Errc::invalid_argument:
      return is_system_error
                 ? "a system call refused an argument"
                 : "invalid argument: a name, a number or a combination of options that is not "
                   "possible";
    case Errc::not_found: return is_system_error ? "no such topic, group or directory" : nullptr;
    case Errc::no_space: return is_system_error ? no_space_sentence(error.system_error) : nullptr;
    case Errc::unsupported:
      return is_system_error
                 ? nullptr
                 : "not supported by this kernel, file system or version of Leat: an option "
                   "that it does not know, or a name with \"://\", which is a topic at a broker";
    default: return nullptr;
  }
}
}  // namespace detail

LEAT_INLINE std::string describe(Error error) {
  if (error == detail::kNoProc.code && error.system_error == detail::kNoProc.system_error)
    return "this needs /proc, which is not mounted here";
  const auto number = static_cast<std::size_t>(error.code);
  std::string sentence =
      number < std::size(detail::kSentences) ? detail::kSentences[number] : "unknown error";
  if (const char* const closer = detail::closer_sentence(error)) sentence = closer;
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

LEAT_INLINE void detail::used_without_value(Error error, const char* file, int line) noexcept {
  std::fprintf(stderr, "leat: a Result without a value was used: %s", describe(error).c_str());
  if (file != nullptr) std::fprintf(stderr, ", at %s:%d", file, line);
  std::fputc('\n', stderr);
  std::abort();
}

}  // namespace leat::inline v0
