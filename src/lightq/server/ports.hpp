// Which data ports topics have.
//
//     Ports ports{5501, 8999, stored_position};
//     ports.take(5501);                                  // of a topic that was stored
//     auto port = ports.next([](int port) { return … });  // the first that is free, and can be bound
//
// Numbers are given in order, round and round, so that a freed one is used again as late as possible: ZeroMQ's
// clients reconnect for ever, and would get another topic's data. Used by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>

namespace leat::broker::lightq {

class Ports {
 public:
  // Numbers from `first` to `last`, beginning with `next` if it is one of them.
  Ports(std::uint16_t first, std::uint16_t last, std::uint16_t next = 0);

  // Marks a number as used. It may lie outside of the range: an earlier configuration had another one.
  void take(std::uint16_t port) { used_.insert(port); }
  void free(std::uint16_t port) { used_.erase(port); }

  // The next number that is free and that `is_usable`; marks it as used. None if all are used.
  std::optional<std::uint16_t> next(const std::function<bool(std::uint16_t)>& is_usable);

  // Where the search goes on; to be stored with the topics.
  std::uint16_t position() const { return next_; }
  // For messages: "5501-8999".
  std::string range() const;

 private:
  std::uint16_t first_;
  std::uint16_t last_;
  std::uint16_t next_;
  std::set<std::uint16_t> used_;
};

}  // namespace leat::broker::lightq
