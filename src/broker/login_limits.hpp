// How many wrong passwords an address may try.
//
//     if (!limits.take(address, now)) return "too many attempts";       // without a hash
//     worker.check(password, verifier, [=](Outcome<bool> is_right) {
//       if (*is_right) limits.give_back(address);                       // only wrong ones count
//     });
//
// Each address has five attempts, and gets one back each 200 ms. An unknown topic or user is an attempt like a wrong
// password. An IPv6 client counts by its first 64 bits, because it can choose the others freely. The table is
// bounded: an address that comes in when it is full replaces the one that tried longest ago. Any thread may call.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <utility>

namespace leat::broker {

class LoginLimits {
 public:
  using Address = boost::asio::ip::address;
  using Time = std::chrono::steady_clock::time_point;

  struct Settings {
    int attempts = 5;                               // At once.
    std::chrono::milliseconds one_more_after{200};  // Until all are there again.
    std::size_t addresses = 16 * 1024;              // About 2 MB.
  };

  LoginLimits() : LoginLimits(Settings{}) {}
  explicit LoginLimits(const Settings& settings) : settings_{settings} {}

  // Takes one attempt of an address. False if it has none left now.
  bool take(const Address& address, Time now);
  // Returns an attempt that was right, or was never made.
  void give_back(const Address& address);

  std::size_t size() const;

 private:
  // Version and network: an IPv4 address also if it comes as IPv6 (::ffff:192.0.2.1).
  using Key = std::pair<int, std::uint64_t>;
  struct Entry {
    Key key;
    Time
        full_at;  // When all attempts are there again. Each attempt taken moves it by one_more_after.
  };
  static Key key_of(const Address& address);

  const Settings settings_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;                          // Under mutex_; the last that tried first.
  std::map<Key, std::list<Entry>::iterator> by_key_;  // Under mutex_.
};

}  // namespace leat::broker
