// What the parts of `leat pub` share: its arguments, and the publisher.
//
//     TopicSender sender{topic, arguments, signals};
//     if (!sender.send("hello")) throw signals.failure(sender.what_was_published());
//
// pub.cpp decides where records come from; pub_sender.cpp publishes them here, remote_pub.cpp at a broker.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/cli.hpp"
#include "cli/stop_on_signal.hpp"
#include "leat/deadline.hpp"
#include "leat/publisher.hpp"

namespace leat::cli {

struct PubArguments {
  std::string topic;
  std::vector<std::string> messages;
  std::string file;                  // Empty or "-": stdin.
  std::string delimiter = "\\n";     // As it was typed.
  std::vector<std::string> headers;  // "name=value"
  std::string key_separator;
  std::optional<std::uint64_t> generate_bytes;
  std::optional<std::uint64_t> count;
  std::optional<std::uint64_t> partition;
  std::chrono::nanoseconds timeout{0};  // 0: none
  bool no_create = false;
  bool null = false;
  bool length_prefixed = false;
  bool json = false;
  bool sync = false;

  // What messages to people call one record of the input: "line", "message" or "record".
  const char* unit() const noexcept;
};

// Fails if one of them is not "name=value". The result points into `texts`.
std::vector<Header> parse_headers(const std::vector<std::string>& texts);

// Publishes texts, wherever the topic is.
class Sender {
 public:
  // `arguments` outlives it.
  explicit Sender(const PubArguments& arguments) : arguments_{arguments} {}
  virtual ~Sender() = default;
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  // Publishes one record. False if a stop was requested while the topic was full: it was not published.
  virtual bool send(std::string_view text) = 0;
  // Waits until everything sent is as safe as was asked for. Between records, this is done when there is nothing to
  // send: one wait for many records.
  virtual void settle() = 0;

  // What ends the command if the next record is too large: it has `size` bytes, as limit() counts, or more.
  virtual Failure too_large(std::uint64_t size, bool or_more) const = 0;

  std::uint64_t sent() const noexcept { return sent_; }
  // For the end of an error message: "; 3 records were sent before"
  std::string what_was_sent() const;
  // "3 lines were published"
  std::string what_was_published() const;
  // The size limit of a record with all its parts but its time.
  virtual std::size_t limit() const noexcept = 0;

 protected:
  // How long it waits before it says for what, and again before it looks whether that has changed.
  static constexpr std::chrono::nanoseconds kPatience = std::chrono::seconds{1};

  // When a wait that begins now is given up.
  Deadline give_up_at() const noexcept {
    return arguments_.timeout.count() == 0 ? Deadline::never() : Deadline{arguments_.timeout};
  }
  // Prints for what it waits, unless that is what it printed last.
  void say(const std::string& sentence);
  // What ends the command when --timeout has passed: ": 2s have passed, and topic 'news' is full".
  Failure gave_up(const std::string& sentence) const;

  const PubArguments& arguments_;
  std::uint64_t sent_ = 0;

 private:
  std::string said_;
};

// Publishes to a topic of this machine, with the key, headers and partition given on the command line.
class TopicSender final : public Sender {
 public:
  // `arguments` and `topic` outlive it.
  TopicSender(const Topic& topic, const PubArguments& arguments, const StopOnSignal& signals);

  bool send(std::string_view text) override;
  // With --sync, and on topics of durability fsync: waits until everything sent is on stable storage.
  void settle() override;
  Failure too_large(std::uint64_t size, bool or_more) const override;
  std::size_t limit() const noexcept override { return publisher_.max_record_size() - time_size_; }

 private:
  bool send_json(std::string_view text);
  bool publish(const NewRecord& record);
  Result<std::uint64_t> wait_and_publish(const NewRecord& record);
  // "topic 'news' is full and waits for group 'wokers', which has no members: `leat …"
  std::string what_is_full(const NewRecord& record) const;

  const Topic& topic_;
  std::vector<Header> headers_;
  std::string separator_;
  std::optional<std::uint32_t> partition_;
  Publisher publisher_;
  std::stop_token stop_;
  std::size_t time_size_ = 0;  // Of what the topic adds to each record.
  bool syncs_ = false;
};

}  // namespace leat::cli
