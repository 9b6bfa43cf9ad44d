#include "failure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "terminal.hpp"

namespace leat::tool {

int exit_code_for(Errc code) noexcept {
  switch (code) {
    case Errc::ok: return 0;
    case Errc::invalid_argument:
    case Errc::too_large:
    case Errc::not_allowed:
    case Errc::needs_durable:
    case Errc::needs_timestamps:
    case Errc::needs_growing:
    case Errc::not_with_overwrite:
    case Errc::not_with_durable: return kExitUsage;
    case Errc::not_found:
    case Errc::exists:
    case Errc::busy:
    case Errc::deleted:
    case Errc::closed:
    case Errc::too_many: return kExitNotThere;
    case Errc::permission: return kExitPermission;
    case Errc::wrong_format:
    case Errc::corrupt: return kExitFormat;
    case Errc::full:
    case Errc::no_space:
    case Errc::no_memory: return kExitFull;
    case Errc::timeout:
    case Errc::stopped:
    case Errc::interrupted:
    case Errc::forked:
    case Errc::revoked:
    case Errc::would_deadlock:
    case Errc::unsupported:
    case Errc::in_flight_full:
    case Errc::redelivery_full:
    case Errc::not_in_flight:
    case Errc::lease_lost:
    case Errc::buffer_too_small:
    case Errc::io_error:
    case Errc::read_only:
    case Errc::not_durable:
    case Errc::expired: break;
  }
  return kExitFailed;
}

Failure failure_of(const Problem& problem) {
  return Failure{exit_code_for(problem.code), problem.sentence};
}

void print_notice(std::string sentence) {
  std::replace(sentence.begin(), sentence.end(), '\n', ' ');
  sentence = without_controls(std::move(sentence));
  std::fputs(("leat: " + sentence + "\n").c_str(), stderr);  // fmt::print would throw.
}

Failure system_failure(const std::string& what, int error_number) {
  int code = kExitFailed;
  if (error_number == ENOENT || error_number == ENOTDIR) code = kExitNotThere;
  if (error_number == EACCES || error_number == EPERM || error_number == EROFS)
    code = kExitPermission;
  if (error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG ||
      error_number == ENOMEM)
    code = kExitFull;
  if (error_number == EISDIR) code = kExitUsage;
  return Failure{code, fmt::format("{}: {}", what, std::strerror(error_number))};
}

}  // namespace leat::tool
