#include "data.hpp"

#include <utility>

#include "hello.hpp"
#include "lightq/wire/raw_frame.hpp"

namespace leat::lightq {
// --- Producer ------------------------------------------------------------------------------------

Producer::Producer(const Joined& joined, const ProducerOptions& options, const Patience& patience)
    : Producer{Connection{joined.data, Connection::Sends::together, patience}, joined, options,
               patience} {}

Producer::Producer(Connection connection, const Joined& joined, const ProducerOptions& options,
                   const Patience& patience)
    : connection_{std::move(connection)}, options_{options}, topic_{joined.topic} {
  introduce(connection_, inbox_, joined, false, patience);
}

void Producer::publish(std::string_view message, const Patience& patience) {
  if (message.size() > kMaxMessage) {
    throw Problem{Errc::too_large, "a message of " + std::to_string(message.size()) +
                                       " bytes; no broker takes more than " +
                                       std::to_string(kMaxMessage)};
  }
  while (unsent() >= kMaxUnsent) {
    take_counts();
    send_some();
    if (unsent() >= kMaxUnsent && !connection_.wait_readable(patience, true))
      throw connection_.gave_up(patience, "it takes nothing more");
  }
  append_frame(out_, Bytes{message});
  ++sent_;
  if (unsent() >= options_.collect_bytes) send_some();
}

void Producer::flush(const Patience& patience) {
  for (;;) {
    send_some();
    if (unsent() == 0) return;
    take_counts();  // Or the wait would not wait.
    if (!connection_.wait_readable(patience, true))
      throw connection_.gave_up(patience, "it takes nothing more");
  }
}

std::uint64_t Producer::published() {
  take_counts();
  return published_;
}

void Producer::wait_published(std::uint64_t count, const Patience& patience) {
  for (;;) {
    try {
      take_counts();
      send_some();
    } catch (const Problem& problem) {  // A broker that stops says the last count, and ends.
      if (problem.code() != Errc::closed || published_ < count) throw;
    }
    if (published_ >= count) return;
    if (!connection_.wait_readable(patience, unsent() != 0))
      throw connection_.gave_up(patience, "not all messages are in topic '" + topic_ + "'");
  }
}

void Producer::send_some() {
  if (unsent() == 0) return;
  try {
    begin_ += connection_.send_some(std::string_view{out_}.substr(begin_));
  } catch (const Problem& problem) {
    take_counts();  // Throws the same; but first it takes what the broker said before it left.
    throw explained(problem);
  }
  if (begin_ == out_.size()) {
    out_.clear();
    begin_ = 0;
  } else if (begin_ >= kMaxUnsent) {
    out_.erase(0, begin_);
    begin_ = 0;
  }
}

void Producer::take_counts() {
  try {
    do {  // Some may have come with the answer to the hello.
      while (const auto count = inbox_.take_count()) {
        if (*count < published_ || *count > sent_) {
          throw Problem{Errc::corrupt, connection_.name() + " counts " + std::to_string(*count) +
                                           " messages after " + std::to_string(published_) +
                                           ", and " + std::to_string(sent_) + " were sent"};
        }
        published_ = *count;
      }
    } while (inbox_.read(connection_));
  } catch (const Problem& problem) {
    if (problem.code() != Errc::closed) throw;
    throw explained(problem);
  }
}

Problem Producer::explained(const Problem& problem) const {
  if (problem.code() != Errc::closed) return problem;
  return {Errc::closed, std::string{problem.what()} + ": of " + std::to_string(sent_) +
                            " messages, " + std::to_string(published_) +
                            " are known to be in topic '" + topic_ +
                            "'; it ends it when it stops, and after a message larger than its "
                            "limits.message_size"};
}

// --- Consumer ------------------------------------------------------------------------------------

Consumer::Consumer(const Joined& joined, const ConsumerOptions& options, const Patience& patience)
    : Consumer{Connection{joined.data, Connection::Sends::at_once, patience}, joined, options,
               patience} {}

Consumer::Consumer(Connection connection, const Joined& joined, const ConsumerOptions& options,
                   const Patience& patience)
    : connection_{std::move(connection)}, options_{options} {
  introduce(connection_, inbox_, joined, options.acknowledges, patience);
}

std::optional<Bytes> Consumer::next(const Patience& patience) {
  for (;;) {
    if (const auto frame = inbox_.take_frame(kMaxMessage, connection_.name())) {
      ++received_;
      return frame;
    }
    send_count();
    if (inbox_.read(connection_)) continue;
    if (!connection_.wait_readable(patience, !out_.empty())) return std::nullopt;
  }
}

bool Consumer::has_next() const noexcept { return front_frame(inbox_.bytes()).needed == 0; }

void Consumer::send_count() {
  if (!options_.acknowledges) return;
  do {
    if (out_.empty() && sent_count_ != done_) {
      sent_count_ = done_;
      append_number(out_, sent_count_);
    }
    const std::size_t sent = connection_.send_some(out_);
    out_.erase(0, sent);
  } while (out_.empty() && sent_count_ != done_);
}

void Consumer::finish(const Patience& patience) {
  try {
    do {
      send_count();
      if (!out_.empty() && !connection_.wait_readable(patience, true))
        throw connection_.gave_up(patience, "it takes no acknowledgements");
    } while (!out_.empty());
    connection_.end_sending();
    for (;;) {
      inbox_.drop(inbox_.bytes().size());
      if (!inbox_.read(connection_) && !connection_.wait_readable(patience))
        throw connection_.gave_up(patience, "it does not end the connection");
    }
  } catch (const Problem& problem) {
    if (problem.code() != Errc::closed) throw;
  }
}

}  // namespace leat::lightq
