// All connections of a broker: it owns them until they are closed, and there are not too many.
//
//     connections.start(std::make_shared<Echo>(std::move(accepted)));
//     connections.close_all("the broker stops");
//
// Belongs to the thread of its event loop.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "leat/os/os.hpp"
#include "stream.hpp"

namespace leat::broker {

class Connections {
 public:
  struct Limits {
    std::size_t in_all;
    std::size_t per_address;
  };

  // What connections have sent of messages, or commands, that are not whole. Null: no bound.
  struct Unfinished {
    LargeMessages* messages = nullptr;
    LargeMessages* commands = nullptr;
  };
  static constexpr std::size_t kMostOfCommands = 64u << 20;  // bytes
  static constexpr std::size_t kSmallCommand = 4096;  // bytes; up to here, a command counts nothing

  explicit Connections(const Limits& limits) : limits_{limits} {}
  Connections(const Limits& limits, const Unfinished& unfinished)
      : limits_{limits}, unfinished_{unfinished} {}

  // Lets a connection begin, or refuses it if there are too many. Some are only for commands. Those at the Unix socket never
  // wait for the memory that strangers keep.
  enum class Kind { data, commands };
  void start(std::shared_ptr<Stream> stream, Kind kind);
  void close_all(const std::string& why);
  // Calls when many have closed about now, so that their memory can go back.
  void on_many_closed(std::function<void()> call) { on_many_closed_ = std::move(call); }
  // About how many connections the limit of open files leaves room for, beside what the broker itself needs.
  static std::size_t most_by_descriptors();
  // Keeps some descriptors, so that the broker's owner gets in at the Unix socket when strangers and topics have all others.
  void reserve_for_unix();
  // When there was no descriptor for a connection at the Unix socket. True: now there is one.
  bool free_reserved();
  // For those that come from now on.
  void set_limits(const Limits& limits) { limits_ = limits; }

 private:
  void bound(Stream& stream, Kind kind);
  // Makes room by closing one whose client has gone while its topic was full, if there is one.
  bool close_abandoned(const Origin* of_origin);
  // At most ten times a second: it asks the kernel about each connection.
  void check_abandoned();
  void remove(Stream* stream);
  // Whether so many descriptors are in use that only the broker itself should take more.
  bool is_last(const Stream& stream, Kind kind) const;
  std::size_t unix_connections() const;
  void fill_reserve();
  void refuse(std::shared_ptr<Stream> stream, const char* why);

  Limits limits_;
  const Unfinished unfinished_;
  std::map<Stream*, std::shared_ptr<Stream>> streams_;
  std::map<Stream*, std::shared_ptr<Stream>> refused_;  // Until they were told why.
  std::map<Origin, std::size_t> by_origin_;
  std::size_t for_unix_ = 0;                // As many at the Unix socket always get in.
  std::vector<leat::os::Fd> reserved_;      // For those of them that have not come.
  std::multimap<Origin, std::weak_ptr<Stream>> abandoned_;  // When they were looked for.
  std::chrono::steady_clock::time_point next_check_;
  std::size_t most_ = 0;  // The most that were open at once since memory was last freed.
  std::function<void()> on_many_closed_;
};

}  // namespace leat::broker
