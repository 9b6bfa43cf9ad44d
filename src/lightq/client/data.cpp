#include "data.hpp"

#include <utility>

#include "hello.hpp"
#include "lightq/wire/raw_frame.hpp"

namespace leat::lightq {
// --- Producer ------------------------------------------------------------------------------------

Outcome<Producer> Producer::open(const Joined& joined, const ProducerOptions& options,
                                 const Patience& patience) {
  auto connection = Connection::open(joined.data, Connection::Sends::together, patience);
  if (!connection) return connection.problem();
  return open(std::move(*connection), joined, options, patience);
}

Outcome<Producer> Producer::open(Connection connection, const Joined& joined,
                                 const ProducerOptions& options, const Patience& patience) {
  Producer producer{std::move(connection), joined, options};
  auto in = introduce(producer.connection_, producer.inbox_, joined, false, patience);
  if (!in) return in.problem();
  return producer;
}

Outcome<void> Producer::publish(std::string_view message, const Patience& patience) {
  if (message.size() > kMaxMessage) {
    return Problem{Errc::too_large, "a message of " + std::to_string(message.size()) +
                                        " bytes; no broker takes more than " +
                                        std::to_string(kMaxMessage)};
  }
  while (unsent() >= kMaxUnsent) {
    if (auto taken = take_counts(); !taken) return taken;
    if (auto sent = send_some(); !sent) return sent;
    if (unsent() >= kMaxUnsent && !connection_.wait_readable(patience, true))
      return connection_.gave_up(patience, "it takes nothing more");
  }
  append_frame(out_, Bytes{message});
  ++sent_;
  if (unsent() >= options_.collect_bytes) return send_some();
  return {};
}

Outcome<void> Producer::flush(const Patience& patience) {
  for (;;) {
    if (auto sent = send_some(); !sent) return sent;
    if (unsent() == 0) return {};
    if (auto taken = take_counts(); !taken) return taken;  // Or the wait would not wait.
    if (!connection_.wait_readable(patience, true))
      return connection_.gave_up(patience, "it takes nothing more");
  }
}

Outcome<std::uint64_t> Producer::published() {
  if (auto taken = take_counts(); !taken) return taken.problem();
  return published_;
}

Outcome<void> Producer::wait_published(std::uint64_t count, const Patience& patience) {
  for (;;) {
    auto done = take_counts();
    if (done) done = send_some();
    // A broker that stops says the last count, and ends.
    if (!done && (done.problem().code != Errc::closed || published_ < count)) return done;
    if (published_ >= count) return {};
    if (!connection_.wait_readable(patience, unsent() != 0))
      return connection_.gave_up(patience, "not all messages are in topic '" + topic_ + "'");
  }
}

Outcome<void> Producer::send_some() {
  if (unsent() == 0) return {};
  const auto sent = connection_.send_some(std::string_view{out_}.substr(begin_));
  if (!sent) {
    // Fails in the same way; but first it takes what the broker said before it left.
    if (auto taken = take_counts(); !taken) return taken;
    return explained(sent.problem());
  }
  begin_ += *sent;
  if (begin_ == out_.size()) {
    out_.clear();
    begin_ = 0;
  } else if (begin_ >= kMaxUnsent) {
    out_.erase(0, begin_);
    begin_ = 0;
  }
  return {};
}

Outcome<void> Producer::take_counts() {
  for (;;) {  // Some may have come with the answer to the hello.
    while (const auto count = inbox_.take_count()) {
      if (*count < published_ || *count > sent_) {
        return Problem{Errc::corrupt, connection_.name() + " counts " + std::to_string(*count) +
                                          " messages after " + std::to_string(published_) +
                                          ", and " + std::to_string(sent_) + " were sent"};
      }
      published_ = *count;
    }
    const auto came = inbox_.read(connection_);
    if (!came) return explained(came.problem());
    if (!*came) return {};
  }
}

Problem Producer::explained(const Problem& problem) const {
  if (problem.code != Errc::closed) return problem;
  return {Errc::closed, problem.sentence + ": of " + std::to_string(sent_) + " messages, " +
                            std::to_string(published_) + " are known to be in topic '" + topic_ +
                            "'; it ends it when it stops, and after a message larger than its "
                            "limits.message_size"};
}

// --- Consumer ------------------------------------------------------------------------------------

Outcome<Consumer> Consumer::open(const Joined& joined, const ConsumerOptions& options,
                                 const Patience& patience) {
  auto connection = Connection::open(joined.data, Connection::Sends::at_once, patience);
  if (!connection) return connection.problem();
  return open(std::move(*connection), joined, options, patience);
}

Outcome<Consumer> Consumer::open(Connection connection, const Joined& joined,
                                 const ConsumerOptions& options, const Patience& patience) {
  Consumer consumer{std::move(connection), options};
  auto in =
      introduce(consumer.connection_, consumer.inbox_, joined, options.acknowledges, patience);
  if (!in) return in.problem();
  return consumer;
}

Outcome<std::optional<Bytes>> Consumer::next(const Patience& patience) {
  for (;;) {
    auto frame = inbox_.take_frame(kMaxMessage, connection_.name());
    if (!frame) return frame;
    if (*frame) {
      ++received_;
      return frame;
    }
    if (auto sent = send_count(); !sent) return sent.problem();
    const auto came = inbox_.read(connection_);
    if (!came) return came.problem();
    if (!*came && !connection_.wait_readable(patience, !out_.empty())) return frame;
  }
}

bool Consumer::has_next() const noexcept { return front_frame(inbox_.bytes()).needed == 0; }

Outcome<void> Consumer::send_count() {
  if (!options_.acknowledges) return {};
  do {
    if (out_.empty() && sent_count_ != done_) {
      sent_count_ = done_;
      append_number(out_, sent_count_);
    }
    const auto sent = connection_.send_some(out_);
    if (!sent) return sent.problem();
    out_.erase(0, *sent);
  } while (out_.empty() && sent_count_ != done_);
  return {};
}

Outcome<void> Consumer::finish(const Patience& patience) {
  Problem end = finish_and_wait(patience);
  if (end.code == Errc::closed) return {};
  return end;
}

Problem Consumer::finish_and_wait(const Patience& patience) {
  do {
    if (auto sent = send_count(); !sent) return sent.problem();
    if (!out_.empty() && !connection_.wait_readable(patience, true))
      return connection_.gave_up(patience, "it takes no acknowledgements");
  } while (!out_.empty());
  connection_.end_sending();
  for (;;) {
    inbox_.drop(inbox_.bytes().size());
    auto came = inbox_.wait(connection_, patience, "it does not end the connection");
    if (!came) return came.problem();
  }
}

}  // namespace leat::lightq
