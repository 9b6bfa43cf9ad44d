// Data connections to a topic of a broker, with raw framing: one sends messages, the other gets them.
//
//     auto producer = Producer::open(*admin.join("news", user, Role::producer, patience), {}, patience);
//     auto published = producer->publish("hello", patience);
//     if (published) published = producer->wait_published(producer->sent(), patience);
//     if (!published) return published.problem();               // else the topic has it
//
//     auto consumer = Consumer::open(*admin.join("news", user, Role::puller, patience), {.acknowledges = true}, patience);
//     auto message = consumer->next(patience);
//     if (!message) return message.problem();
//     if (*message) { use((*message)->text()); consumer->acknowledge(); }
//
// Each belongs to one thread, and not to a forked child. Every call may fail: `closed` when the connection has ended,
// `corrupt` when the broker breaks the protocol. After that the object is of no more use; the caller joins again if it
// wants to go on. What is sent and received: docs/guide/broker.md, "Without ZeroMQ".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "admin.hpp"

namespace leat::lightq {

// More than any broker allows (limits.message_size).
inline constexpr std::size_t kMaxMessage = 64 << 20;

struct ProducerOptions {
  // Messages are collected until there are so many bytes, or until flush(). 0: each is sent at once.
  std::size_t collect_bytes = 64 * 1024;
};

class Producer {
 public:
  // Connects to the data port and waits until the broker lets it in.
  //   permission   the token is wrong
  //   not_found, timeout, stopped, closed, corrupt, io_error
  static Outcome<Producer> open(const Joined& joined, const ProducerOptions& options,
                                const Patience& patience);
  // Takes a connection that has not said hello, for tests.
  static Outcome<Producer> open(Connection connection, const Joined& joined,
                                const ProducerOptions& options, const Patience& patience);

  // Takes a message. Waits only if the broker takes none (its topic is full) and kMaxUnsent bytes wait here already.
  //   too_large         more than kMaxMessage; nothing happened
  //   timeout, stopped  the message was not taken; the call may be repeated
  Outcome<void> publish(std::string_view message, const Patience& patience = {});
  // Hands to the kernel what was collected.
  //   timeout, stopped  the call may be repeated
  Outcome<void> flush(const Patience& patience = {});

  // How many messages publish() has taken.
  std::uint64_t sent() const noexcept { return sent_; }
  // How many of them the broker has said to be in the topic: the first ones, in order. They outlive a broker that is
  // killed. Takes what has come from it, without waiting.
  Outcome<std::uint64_t> published();
  // Flushes, and waits until published() is at least `count`.
  //   timeout, stopped  the call may be repeated
  Outcome<void> wait_published(std::uint64_t count, const Patience& patience = {});

  static constexpr std::size_t kMaxUnsent = 1 << 20;

 private:
  Producer(Connection connection, const Joined& joined, const ProducerOptions& options)
      : connection_{std::move(connection)}, options_{options}, topic_{joined.topic} {}

  std::size_t unsent() const noexcept { return out_.size() - begin_; }
  Outcome<void> send_some();
  Outcome<void> take_counts();
  Problem explained(const Problem& problem) const;

  Connection connection_;
  Inbox inbox_;
  ProducerOptions options_;
  std::string topic_;
  std::string out_;
  std::size_t begin_ = 0;  // of what the kernel has not taken, in out_
  std::uint64_t sent_ = 0;
  std::uint64_t published_ = 0;
};

struct ConsumerOptions {
  // For pullers: messages are done when acknowledge() says so, and what was not goes to another puller when this
  // connection ends. Otherwise a message is done when the broker has sent it.
  bool acknowledges = false;
};

class Consumer {
 public:
  // As Producer. The role is that of the join: puller or subscriber.
  static Outcome<Consumer> open(const Joined& joined, const ConsumerOptions& options,
                                const Patience& patience);
  static Outcome<Consumer> open(Connection connection, const Joined& joined,
                                const ConsumerOptions& options, const Patience& patience);

  // The next message, valid until the next call. None: the deadline has passed, or a stop was requested.
  Outcome<std::optional<Bytes>> next(const Patience& patience = {});
  // Whether next() needs nothing from the network.
  bool has_next() const noexcept;

  // This consumer is done with all messages that next() returned. Told to the broker before the next wait, or by
  // send_count(), not one by one.
  void acknowledge() noexcept { done_ = received_; }
  // The same for the first `count` of them; never fewer than before.
  void acknowledge(std::uint64_t count) noexcept {
    if (count > done_ && count <= received_) done_ = count;
  }
  // Tells it without waiting, as far as the kernel takes it.
  Outcome<void> send_count();
  // Tells it, ends the connection, and waits until the broker has closed it: then what was acknowledged is settled.
  // Messages that come meanwhile are dropped (and, with acknowledgements, go to others).
  //   timeout, stopped
  Outcome<void> finish(const Patience& patience = {});

  std::uint64_t received() const noexcept { return received_; }

 private:
  Consumer(Connection connection, const ConsumerOptions& options)
      : connection_{std::move(connection)}, options_{options} {}

  // Why the connection ended: `closed` if the broker has closed it.
  Problem finish_and_wait(const Patience& patience);

  Connection connection_;
  Inbox inbox_;
  ConsumerOptions options_;
  std::uint64_t received_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t sent_count_ = 0;
  std::string out_;  // Of the last count, what the kernel did not take.
};

}  // namespace leat::lightq
