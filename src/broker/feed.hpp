// Gives every record of a topic to all its listeners, encoded once for all of them.
//
//     auto feed = Feed::open(loop, topic, [](std::string& out, const Record& record) { … }, on_failure);
//     (*feed)->add(listener);              // gets what is published from now on
//     (*feed)->remove(listener);
//
// Belongs to the thread of its event loop.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "broker/outcome.hpp"
#include "broker/watch.hpp"
#include "leat/leat.hpp"

namespace leat::broker {

// Encoded records.
struct Chunk {
  std::string bytes;
  std::uint64_t records = 0;
};

// A connection that gets all of a topic's records. One that does not keep up must drop chunks: none may hold up others.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void take(const std::shared_ptr<const Chunk>& chunk) = 0;
};

class Feed {
 public:
  using Encode = std::function<void(std::string& out, const Record& record)>;

  static Outcome<std::unique_ptr<Feed>> open(boost::asio::io_context& loop, const Topic& topic,
                                             Encode encode, std::function<void(Error)> on_failure);

  // There are new records; sooner than the library's descriptor would say so.
  void look() { pass_on(); }
  void add(Listener& listener);
  void remove(Listener& listener);

 private:
  Feed(Subscriber subscriber, Encode encode, std::function<void(Error)> on_failure)
      : subscriber_{std::move(subscriber)},
        encode_{std::move(encode)},
        on_failure_{std::move(on_failure)} {}
  void pass_on();
  // False if nothing was there.
  bool pass_on_once();

  Subscriber subscriber_;
  Encode encode_;
  std::function<void(Error)> on_failure_;
  std::optional<Watch> watch_;
  std::vector<Listener*> listeners_;
  bool has_failed_ = false;
};

}  // namespace leat::broker
