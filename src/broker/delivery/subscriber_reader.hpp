// How a broadcaster reads its topic: on the loop only what is in memory, on the thread of a BlockingWorker all.
//
//     reader.read({.until = 1000, .encodes = true});
//     if (reader.chunk->records != 0) pass_on(reader.chunk);
//
// Used by one thread at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "backlog.hpp"
#include "leat/leat.hpp"
#include "outcome/outcome.hpp"

namespace leat::broker {

struct SubscriberReader {
  // Called on the loop and on the disk's thread, not at once.
  using Encode = std::function<void(std::string& out, const Record& record)>;
  struct Limits {
    std::uint64_t until = ~std::uint64_t{0};  // Offset; with one partition.
    bool encodes = false;                     // Else the records are passed over.
  };

  // Subscribes from the topic's end. On any thread: it may block.
  static Outcome<SubscriberReader> open(const Topic& topic, Encode encode);

  // Reads a chunk of what is in memory.
  void read(const Limits& limits);
  // Reads a chunk of what is in memory or on disk; ends early once `is_over`.
  void read_from_disk(const Limits& limits, const std::atomic<bool>& is_over);
  // From now on. It must not be moved any more.
  void count_lost();

  Subscriber subscriber;
  int fd;  // Readable when there may be something to read.
  Encode encode;
  // Outcome of the last read.
  std::shared_ptr<Chunk> chunk;
  Error failure;
  bool encodes = false;       // As the limits said.
  std::uint64_t reached = 0;  // The offset behind the last record.
  std::uint64_t lost = 0;     // Records that were overwritten; who reports them sets it back.

 private:
  SubscriberReader(Subscriber from, int wait_fd, Encode with)
      : subscriber{std::move(from)}, fd{wait_fd}, encode{std::move(with)} {}
  void read(const Limits& limits, const std::atomic<bool>& is_over);
};

}  // namespace leat::broker
