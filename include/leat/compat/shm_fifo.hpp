// ShmFifo's interface on a topic: programs written for it compile against this header.
//
//     ccommons::ShmFifo fifo{"/messages", 1048000016, true};
//     fifo.write(text, 133);
//     ccommons::shm_fifo_message message;
//     while (fifo.read(message)) use(message.content, message.value_length);
//
// One object belongs to one thread; any number of processes write and read the same name. What
// ShmFifo did silently wrong is an exception here: a message over 1024 bytes, a full log, a read
// beyond the end. The log never reuses room (`--retain all`) and holds floor(size / 1048) messages.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "leat/leat.hpp"

namespace ccommons {

inline constexpr int MESSAGE_CONTENT_SIZE = 1024;

enum ShmErrorCode {
  C_COMMONS_SHM_CREATION_ERROR = 1,
  C_COMMONS_SHM_MESSAGE_TOO_LARGE = 2,
  C_COMMONS_SHM_FULL = 3,
  C_COMMONS_SHM_NO_MESSAGE = 4,
  C_COMMONS_SHM_FAILED = 5,
};

class ShmException : public std::exception {
 public:
  ShmException(int code, std::string message) : code_{code}, message_{std::move(message)} {}
  const char* what() const noexcept override { return message_.c_str(); }
  int code() const noexcept { return code_; }

 private:
  int code_;
  std::string message_;
};

// As in ShmFifo: 1048 bytes, content zero-filled past value_length and not terminated when full.
struct shm_fifo_message {
  std::int64_t value_length;
  std::int64_t message_number;  // counted from 1 by the reading object
  std::int8_t status;           // always 0
  char content[MESSAGE_CONTENT_SIZE];
};
static_assert(sizeof(shm_fifo_message) == 1048);

class ShmFifo {
 public:
  // Creates the log or attaches to the one of that name. `size_bytes` / 1048 messages fit; room for
  // that many of the largest is taken at once. Unless `keep_shm_file`, the destructor deletes it.
  // Throws C_COMMONS_SHM_CREATION_ERROR.
  ShmFifo(const std::string& name, int size_bytes, bool keep_shm_file = false)
      : limit_{size_bytes < 0 ? 0
                              : static_cast<std::uint64_t>(size_bytes) / sizeof(shm_fifo_message)},
        keep_{keep_shm_file} {
    if (limit_ == 0) throw ShmException{C_COMMONS_SHM_CREATION_ERROR, "the size holds no message"};
    // Eight segments; each may end with room for less than one message.
    constexpr std::uint64_t kLargest =
        leat::detail::granules_for(MESSAGE_CONTENT_SIZE) * leat::detail::kGranule;
    const std::string topic_name = !name.empty() && name[0] == '/' ? name.substr(1) : name;
    auto topic = leat::Topic::open_or_create(
        topic_name, {.capacity_bytes = (limit_ + 8) * kLargest, .retain_all = true});
    if (!topic) throw ShmException{C_COMMONS_SHM_CREATION_ERROR, leat::describe(topic.error())};
    topic_.emplace(std::move(*topic));
  }
  ShmFifo(const ShmFifo&) = delete;
  ShmFifo& operator=(const ShmFifo&) = delete;
  ~ShmFifo() {
    const std::string name = topic_->name();
    publisher_.reset();
    subscriber_.reset();
    topic_.reset();
    // Others who have it open keep what they have, as with an unlinked file.
    if (!keep_) (void)leat::Topic::remove(name, {.force = true});
  }

  // Appends a message. Throws C_COMMONS_SHM_MESSAGE_TOO_LARGE for a length below 0 or over 1024 and
  // C_COMMONS_SHM_FULL when the log holds all it can; the log is as before then.
  void write(const char* message, int length) {
    if (length < 0 || length > MESSAGE_CONTENT_SIZE) {
      throw ShmException{C_COMMONS_SHM_MESSAGE_TOO_LARGE, "a message has 0 to 1024 bytes"};
    }
    if (!publisher_) {
      auto publisher = topic_->publisher();
      if (!publisher) throw ShmException{C_COMMONS_SHM_FAILED, leat::describe(publisher.error())};
      publisher_.emplace(std::move(*publisher));
      next_offset_ = topic_->info().partitions[0].end;
    }
    if (next_offset_ >= limit_) throw ShmException{C_COMMONS_SHM_FULL, "the log is full"};
    auto offset = publisher_->publish(leat::Bytes{message, static_cast<std::size_t>(length)});
    if (!offset) {
      const int code =
          offset.error() == leat::Errc::full ? C_COMMONS_SHM_FULL : C_COMMONS_SHM_FAILED;
      throw ShmException{code, leat::describe(offset.error())};
    }
    next_offset_ = *offset + 1;
    // Another writer took the last place at the same time: readers stop at the limit.
    if (*offset >= limit_) throw ShmException{C_COMMONS_SHM_FULL, "the log is full"};
    ++written_;
  }

  // The next message for this object, from the oldest on. False at the end of the log: `buffer` is
  // then all zero. Never waits.
  bool read(shm_fifo_message& buffer) {
    std::memset(static_cast<void*>(&buffer), 0, sizeof(buffer));
    if (!subscriber_) {
      auto subscriber = topic_->subscriber({.from = leat::From::beginning});
      if (!subscriber) throw ShmException{C_COMMONS_SHM_FAILED, leat::describe(subscriber.error())};
      subscriber_.emplace(std::move(*subscriber));
    }
    bool found = false;
    auto count = subscriber_->poll(1, [&](const leat::Record& record) {
      if (record.offset >= limit_) return;
      found = true;
      const std::size_t length = std::min<std::size_t>(record.value.size(), MESSAGE_CONTENT_SIZE);
      buffer.value_length = static_cast<std::int64_t>(length);
      buffer.message_number = ++read_;
      if (length != 0) std::memcpy(buffer.content, record.value.data(), length);
    });
    if (!count && !(count.error() == leat::Errc::deleted)) {
      throw ShmException{C_COMMONS_SHM_FAILED, leat::describe(count.error())};
    }
    return found;
  }

  // The same in a new message, which the caller deletes (`delete &message`), as in ShmFifo. Throws
  // C_COMMONS_SHM_NO_MESSAGE at the end of the log.
  shm_fifo_message& read() {
    auto message = std::make_unique<shm_fifo_message>();
    if (!read(*message)) throw ShmException{C_COMMONS_SHM_NO_MESSAGE, "no message"};
    return *message.release();
  }

  // Messages that this object has written.
  long num_messages() const noexcept { return written_; }

 private:
  std::uint64_t limit_;
  bool keep_;
  std::optional<leat::Topic> topic_;
  std::optional<leat::Publisher> publisher_;    // Made by the first write.
  std::optional<leat::Subscriber> subscriber_;  // Made by the first read.
  std::uint64_t next_offset_ = 0;
  std::int64_t read_ = 0;
  long written_ = 0;
};

}  // namespace ccommons
