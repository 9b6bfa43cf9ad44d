// All connections of a broker: it owns them until they are closed, and there are not too many.
//
//     connections.start(std::make_shared<Echo>(std::move(accepted)));
//     connections.close_all("the broker stops");
//
// Belongs to the thread of its event loop.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "broker/stream.hpp"

namespace leat::broker {

class Connections {
 public:
  struct Limits {
    std::size_t in_all;
    std::size_t per_address;
  };

  explicit Connections(const Limits& limits) : limits_{limits} {}

  // Lets a connection begin, or refuses it if there are too many. Some are only for commands.
  enum class Kind { data, commands };
  void start(std::shared_ptr<Stream> stream, Kind kind);
  void close_all(const std::string& why);
  // For those that come from now on.
  void set_limits(const Limits& limits) { limits_ = limits; }

 private:
  // Makes room by closing one whose client has gone while its topic was full, if there is one.
  bool close_abandoned(const Origin* of_origin);
  void remove(Stream* stream);
  void refuse(std::shared_ptr<Stream> stream, const char* why);

  Limits limits_;
  std::map<Stream*, std::shared_ptr<Stream>> streams_;
  std::map<Stream*, std::shared_ptr<Stream>> refused_;  // Until they were told why.
  std::map<Origin, std::size_t> by_origin_;
};

}  // namespace leat::broker
