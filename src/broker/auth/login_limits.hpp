// How many wrong passwords an origin (peer.hpp) may try: an address, as far as a client cannot choose it.
//
//     if (!limits.take(origin, now)) return "too many attempts";       // without a hash
//     worker.check(password, verifier, [=](Outcome<bool> is_right) {
//       if (*is_right) limits.return_attempt(origin);                       // only wrong ones count
//     });
//
// Each origin has five attempts, and gets one back each 200 ms. An unknown topic or user is an attempt like a wrong
// password. The table is bounded: an origin that comes in when it is full replaces the one that tried longest ago. Any
// thread may call.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>

#include "broker/net/peer.hpp"

namespace leat::broker {

class LoginLimits {
 public:
  using Time = std::chrono::steady_clock::time_point;

  struct Settings {
    int attempts = 5;                               // At once.
    std::chrono::milliseconds one_more_after{200};  // Until all are there again.
    std::size_t origins = 16 * 1024;                // About 2 MB.
  };

  LoginLimits() : LoginLimits(Settings{}) {}
  explicit LoginLimits(const Settings& settings) : settings_{settings} {}

  // Takes one attempt of an origin. False if it has none left now.
  bool take(const Origin& origin, Time now);
  // When an origin has an attempt: in the past if it has one now.
  Time next_at(const Origin& origin) const;
  // Returns an attempt that was right, or was never made.
  void return_attempt(const Origin& origin);

  std::size_t size() const;

 private:
  struct Entry {
    Origin origin;
    // When all attempts are there again. Each attempt taken moves it by one_more_after.
    Time full_at;
  };

  const Settings settings_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // Under mutex_; the last that tried first.
  std::map<Origin, std::list<Entry>::iterator> by_origin_;  // Under mutex_.
};

}  // namespace leat::broker
