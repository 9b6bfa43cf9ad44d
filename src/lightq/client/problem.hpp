// What calls of the client throw: one sentence for a person, and a code for a program.
//
//     try { admin.join("news", credentials, Role::producer); }
//     catch (const Problem& problem) { send_count(problem.what()); return exit_code_for(problem.code()); }
//
// A sentence has no full stop and never contains a password. What a broker said is in it only in part, and without
// control characters.
#pragma once

#include <chrono>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "leat/deadline.hpp"
#include "leat/result.hpp"

namespace leat::lightq {

// not_found: nobody listens there, or the broker has no such topic. permission: wrong user or password. timeout, stopped:
// see Patience. closed: the connection has ended. corrupt: the broker sent what no broker sends. invalid_argument,
// exists, busy, unsupported, too_large, io_error: as in leat/result.hpp.
class Problem : public std::runtime_error {
 public:
  Problem(Errc code, const std::string& sentence) : std::runtime_error{sentence}, code_{code} {}
  Errc code() const noexcept { return code_; }

 private:
  Errc code_;
};

// How long a call may wait. A stop ends it if a signal interrupts the thread as well: blocking calls are not watched by
// another thread.
struct Patience {
  Deadline deadline = Deadline::never();
  std::stop_token stop = {};
};

// How long the tools and the C functions wait for a connection, and for an answer.
inline Patience to_connect(std::stop_token stop = {}) {
  return {Deadline{std::chrono::seconds{5}}, std::move(stop)};
}
inline Patience to_answer(std::stop_token stop = {}) {
  return {Deadline{std::chrono::seconds{20}}, std::move(stop)};
}

// What a stranger said, fit for a sentence: UTF-8 without control characters, and not too long.
std::string shown(std::string_view text);

}  // namespace leat::lightq
