// How long a call of the client may wait.
//
//     auto admin = Admin::open(address, to_connect(stop));    // `timeout` after 5 s, `stopped` after a stop
#pragma once

#include <chrono>
#include <stop_token>
#include <utility>

#include "leat/deadline.hpp"

namespace leat::lightq {

// A stop ends a call if a signal interrupts the thread as well: blocking calls are not watched by another thread.
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

}  // namespace leat::lightq
