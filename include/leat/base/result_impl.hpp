// Conversion of errno values to error codes, and of errors to sentences.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
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
// An archiver may also lack a descriptor, memory or a permission.
inline const char* no_space_sentence(std::int32_t reason) noexcept {
  switch (reason) {
    case 0: return "no room for files, or the archiver cannot write them";
    case ENOSPC:
    case EDQUOT: return "no room for files: no bytes or inodes are free, or a quota is used up";
    case EFBIG: return "a file would be larger than `ulimit -f` or its file system allows";
    default: return "the archiver cannot write the topic's files";
  }
}
}  // namespace detail

LEAT_INLINE std::string describe(Error error) {
  const char* text = "unknown error";
  switch (error.code) {
    case Errc::ok: text = "no error"; break;
    case Errc::invalid_argument: text = "invalid argument"; break;
    case Errc::not_found: text = "no such topic or group"; break;
    case Errc::exists: text = "the topic exists already"; break;
    case Errc::busy:
      text = "in use by another process or handle, or by a claim that is still open";
      break;
    case Errc::permission: text = "permission denied"; break;
    case Errc::wrong_format: text = "not a Leat topic of this format version"; break;
    case Errc::corrupt: text = "the topic is corrupt: a check on its shared memory failed"; break;
    case Errc::full: text = "the topic is full"; break;
    case Errc::no_space: text = detail::no_space_sentence(error.system_error); break;
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
    case Errc::too_many: text = "no slot for another participant or group is free"; break;
    case Errc::unsupported: text = "not supported by this kernel or file system"; break;
    case Errc::in_flight_full:
      text = "this member holds as many records as its group allows: acknowledge some";
      break;
    case Errc::redelivery_full:
      text = "more records came back, or wait for their key, than the group has room for";
      break;
    case Errc::not_in_flight: text = "that record or claim is not in flight (any more)"; break;
    case Errc::lease_lost: text = "the record was held for longer than the group's lease"; break;
    case Errc::closed: text = "the consumer group was deleted"; break;
    case Errc::buffer_too_small: text = "the buffer is too small for the record"; break;
    case Errc::io_error: text = "a system call failed"; break;
    case Errc::read_only: text = "the topic is read-only: writing to its files failed"; break;
    case Errc::not_durable: text = "published, but not on stable storage in time"; break;
    case Errc::expired: text = "retention has deleted the group's next record"; break;
    case Errc::interrupted: text = "a signal interrupted the wait"; break;
    case Errc::no_memory: text = "out of memory, or at a limit of memory or of mappings"; break;
  }
  if (error == detail::kNoProc.code && error.system_error == detail::kNoProc.system_error)
    return "this needs /proc, which is not mounted here";
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

LEAT_INLINE void detail::used_without_value(Error error, const char* file, int line) noexcept {
  std::fprintf(stderr, "leat: a Result without a value was used: %s", describe(error).c_str());
  if (file != nullptr) std::fprintf(stderr, ", at %s:%d", file, line);
  std::fputc('\n', stderr);
  std::abort();
}

}  // namespace leat::inline v0
