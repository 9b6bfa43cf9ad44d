// What waits for the subscribers of all topics, and who gives up when it is too much.
//
//     const auto chunk = std::make_shared<Chunk>();
//     encode(chunk->bytes);
//     backlog.count(*chunk);                        // until nobody has it any more
//     for (SubscriberSink* const sink : sinks) sink->take(chunk);
//     backlog.trim();                               // may call give_up() of those for whom something waits
//
// Chunks are shared: what one subscriber waits for costs nothing more if another one waits for it too. Subscribers that
// stopped at different times wait for different chunks, each for up to 8 MiB. Without a bound on the sum, whoever may read one
// topic could fill the memory with connections that read nothing. Those that wait for the oldest chunks give up first.
// Belongs to the thread of its event loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>

namespace leat::broker {

// Encoded records.
struct Chunk {
  std::string bytes;
  std::uint64_t records = 0;
  std::size_t payload_bytes = 0;  // Of the records' values.
  std::uint64_t number = 0;       // Of a later chunk, of whatever topic, it is larger.

  Chunk() = default;
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;
  ~Chunk() {
    if (total != nullptr) *total -= counted;
  }

  std::shared_ptr<std::size_t> total;  // That it is counted in; null before.
  std::size_t counted = 0;
};

// One for whom chunks may wait.
class Backlogged {
 public:
  virtual ~Backlogged() = default;
  // The number of the oldest chunk that it keeps.
  virtual std::uint64_t oldest() const = 0;
  // Lets go of what it can. Returns how many bytes it will let go of later, because its connection is closed.
  virtual std::size_t give_up() = 0;
};

class Backlog {
 public:
  static constexpr std::size_t kMost = 128u << 20;

  explicit Backlog(std::size_t most = kMost) : most_{most}, limit_{most} {}
  Backlog(const Backlog&) = delete;
  Backlog& operator=(const Backlog&) = delete;

  void count(Chunk& chunk);
  // Those for whom chunks wait.
  void add(Backlogged& one) { waiting_.insert(&one); }
  void remove(Backlogged& one) { waiting_.erase(&one); }
  void trim();

  std::size_t bytes() const noexcept { return *total_; }
  bool is_full() const noexcept { return bytes() > most_; }

 private:
  const std::size_t most_;
  // When trim() looks again: later than at most_ if nobody could give up anything.
  std::size_t limit_;
  std::shared_ptr<std::size_t> total_ = std::make_shared<std::size_t>(0);
  std::uint64_t last_number_ = 0;
  std::set<Backlogged*> waiting_;
};

}  // namespace leat::broker
