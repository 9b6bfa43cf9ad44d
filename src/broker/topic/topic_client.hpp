// What a connection does with its topic once it is let in: it produces, pulls or listens. Knows no framing: how records are
// written is an Encoding.
//
//     PublishingClient role{stream, topic};
//     role.open({user, version}, [&](Outcome<void> opened) {
//       if (!opened) return refuse(opened.problem());
//       if (role.begin()) stream.resume();
//     });
//     return kPause;                                      // Nothing is read before that.
//     …
//     if (!role.on_message(message)) return kPause;       // The role resumes the stream.
//     role.leave();                                       // at the latest when the stream is closed
//
// A role belongs to its stream.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "broker/net/stream.hpp"
#include "broker_topic.hpp"

namespace leat::broker {

// By what a client was let in.
struct Principal {
  std::string user = {};     // Empty: the topic is open, or has no user.
  std::int64_t version = 0;  // Of the password that opened it; 0: the topic is open.
};

enum class ClientRole { publisher, consumer, subscriber };

// For stats.
struct ClientStats {
  std::string address;
  ClientRole role = ClientRole::publisher;
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;  // of them
  double rate = 0;         // messages per second, since the last look that was a second ago or more
  std::uint64_t lag = 0;   // messages that are under way between it and the topic
  std::uint64_t lost = 0;  // messages that it was too slow for
  bool is_slow = false;
};

class TopicClient : public TopicUser {
 public:
  TopicClient(const TopicClient&) = delete;
  TopicClient& operator=(const TopicClient&) = delete;

  // Opens what it needs of the topic. Nothing is sent yet. `done` is not called before this returns, nor once the stream is
  // closed.
  void open(Principal principal, TopicLog::Done done);
  // False: as on_message().
  virtual bool begin() { return true; }
  void leave();

  // What the client sent. False: take no more before the stream is resumed.
  virtual bool on_message(Bytes message) {
    (void)message;
    return true;
  }
  // There is no whole message any more. False: as on_message().
  virtual bool on_idle() { return true; }
  // As Stream::on_sent().
  virtual void on_sent() {}

  Stream& stream() const noexcept { return stream_; }
  const Principal& principal() const noexcept { return principal_; }
  virtual Access access() const noexcept { return Access::read; }
  ClientStats stats();

 protected:
  TopicClient(Stream& stream, BrokerTopic& topic, std::uint64_t& count)
      : stream_{stream}, topic_{topic}, count_{count} {}
  virtual TopicUse use() const = 0;
  // The log is open for this use.
  virtual Outcome<void> on_open() = 0;
  virtual void on_leave() = 0;
  // Adds what only this role knows.
  virtual void add_stats(ClientStats& stats) const = 0;
  void count(std::uint64_t messages, std::size_t bytes);
  // Whether it is one of the publishers or subscribers that the topic counts; at first not.
  void be_counted(bool counts);

  Stream& stream_;
  BrokerTopic& topic_;

 private:
  void on_log_closed(const std::string& why) override { stream_.close(why); }

  std::uint64_t& count_;  // Of the topic's clients.
  Principal principal_;
  std::uint64_t messages_ = 0;
  std::uint64_t bytes_ = 0;
  std::chrono::steady_clock::time_point measured_at_ = std::chrono::steady_clock::now();
  std::uint64_t messages_then_ = 0;
  bool is_open_ = false;
  bool is_counted_ = false;
};

class PublishingClient final : public TopicClient {
 public:
  // Called when more of this client's messages are visible, with how many are in all.
  using OnPublished = std::function<void(std::uint64_t)>;

  PublishingClient(Stream& stream, BrokerTopic& topic, OnPublished on_published = {})
      : TopicClient{stream, topic, topic.publishers}, on_published_{std::move(on_published)} {}
  bool begin() override;
  bool on_message(Bytes message) override;
  bool on_idle() override;
  Access access() const noexcept override { return Access::write; }

 private:
  void add_stats(ClientStats& stats) const override;
  TopicUse use() const override { return TopicUse::publish(); }
  Outcome<void> on_open() override;
  void on_leave() override {
    publish_buffer_ = nullptr;
    waits_ = {};
  }
  // For a wait to end with.
  std::function<void()> go_on();

  OnPublished on_published_;
  PublishBuffer* publish_buffer_ = nullptr;
  WaitingCalls::Place waits_;  // For room, or for consumers.
  std::uint64_t added_ = 0;
  std::uint64_t published_ = 0;
};

class ConsumingClient final : public TopicClient, public GroupConsumer {
 public:
  // `as`: TopicUse::consume() or consume_own(). `acknowledges`: the client tells what it has done with the messages; else it is
  // enough that the kernel took them.
  ConsumingClient(Stream& stream, BrokerTopic& topic, TopicUse as, const Encoding& encoding,
                  bool acknowledges)
      : TopicClient{stream, topic, topic.subscribers},
        as_{std::move(as)},
        encoding_{encoding},
        acknowledges_{acknowledges} {}
  bool begin() override;
  void on_sent() override;
  // The client is done with so many messages, counted from the first one. False: with more than the kernel took.
  bool on_done(std::uint64_t count);

 private:
  TopicUse use() const override { return as_; }
  Outcome<void> on_open() override;
  void on_leave() override;
  void add_stats(ClientStats& stats) const override;
  void append(const Record& record) override;
  void send() override { stream_.flush(); }
  void take_back(std::uint64_t begin, std::uint64_t end) override { stream_.cut(begin, end); }
  std::uint64_t appended() const override { return stream_.ended_at(); }
  std::uint64_t sent() const override { return stream_.sent_bytes(); }
  bool is_idle() const override { return stream_.is_idle(); }
  bool is_stuck() const override { return stream_.is_stuck(); }
  bool acknowledges() const override { return acknowledges_; }
  void cut_off() override;

  const TopicUse as_;
  const Encoding& encoding_;
  bool acknowledges_;
  std::uint64_t done_ = 0;
  GroupDispatcher* dispatcher_ = nullptr;
};

class SubscribingClient final : public TopicClient, public SubscriberSink, private Backlogged {
 public:
  SubscribingClient(Stream& stream, BrokerTopic& topic, const Encoding& encoding)
      : TopicClient{stream, topic, topic.subscribers}, encoding_{encoding} {}
  void on_sent() override { send_next(); }
  // Whether it wants messages; at first not. The topic counts it from then on until it leaves: who waits for subscribers
  // reaches all that are counted.
  void listen(bool wants);

 private:
  TopicUse use() const override { return TopicUse::subscribe(encoding_); }
  Outcome<void> on_open() override;
  void on_leave() override;
  void add_stats(ClientStats& stats) const override;
  void take(const std::shared_ptr<const Chunk>& chunk) override;
  void lose(std::uint64_t records) override { lost_ += records; }
  bool holds_up() const override;
  std::uint64_t oldest() const override;
  std::size_t give_up() override;
  bool waits() const noexcept { return topic_.slow_subscriber() == SlowSubscriber::wait; }
  void send_next();
  void drop_waiting();

  const Encoding& encoding_;
  Broadcaster* broadcaster_ = nullptr;
  std::shared_ptr<const Chunk> sending_;  // The connection has it; perhaps the kernel took it all.
  std::deque<std::shared_ptr<const Chunk>> waiting_;
  std::size_t waiting_bytes_ = 0;
  std::uint64_t waiting_records_ = 0;
  std::uint64_t lost_ = 0;  // Messages that it was too slow for.
  bool is_sending_ = false;
};

}  // namespace leat::broker
