// ShmFifo's interface on a topic: programs written for ShmFifo compile against this header.
//
//     ccommons::ShmFifo fifo{"/messages", 1048000016, true};
//     fifo.write(text, 133);
//     ccommons::shm_fifo_message message;
//     while (fifo.read(message)) use(message.content, message.value_length);
//
// An object belongs to one thread; any number of processes may write and read the same name. What
// ShmFifo got silently wrong is reported here: a message over 1024 bytes and a full log are
// exceptions, and reading at the end of the log returns an empty message, never the last one
// again. The log never reuses room (`--retain all`). An object writes until the log holds
// floor(size / 1048) messages, of any size. Reading has no such limit, whatever size the reading
// object was given.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "leat/compat/gaps.hpp"
#include "leat/leat.hpp"

namespace ccommons {

inline constexpr int MESSAGE_CONTENT_SIZE = 1024;

// The first is ShmFifo's own; the others are for errors that it did not report.
enum ShmExceptionType {
  C_COMMONS_SHM_CREATION_ERROR = 1,
  C_COMMONS_SHM_MESSAGE_TOO_LARGE = 2,
  C_COMMONS_SHM_FULL = 3,
  C_COMMONS_SHM_NO_MESSAGE = 4,
  C_COMMONS_SHM_FAILED = 5,
};

struct ShmException : std::exception {
  ShmException(ShmExceptionType type, std::string text) : message{std::move(text)}, id{type} {}
  const char* what() const noexcept override { return message.c_str(); }

  std::string message;
  ShmExceptionType id;
};

// As in ShmFifo: 1048 bytes; `content` is zero-filled past value_length, and not
// terminated when full.
struct shm_fifo_message {
  std::int64_t value_length = 0;
  std::int64_t message_number = 0;  // counted from 1 by the reading object; 0: no message
  std::int8_t status = 0;           // always 0: records do not change
  char content[MESSAGE_CONTENT_SIZE] = {};
};
static_assert(sizeof(shm_fifo_message) == 1048);

inline constexpr std::size_t SIZE_MESSAGE = sizeof(shm_fifo_message);

class ShmFifo {
 public:
  // Creates the log, or attaches to it if it exists. `size_bytes` / 1048 messages fit; room for as
  // many of the largest size is allocated at once. The destructor deletes the log unless
  // `keep_shm_file`. Throws C_COMMONS_SHM_CREATION_ERROR.
  ShmFifo(const std::string& name, int size_bytes, bool keep_shm_file = false)
      : limit_{size_bytes < 0 ? 0 : static_cast<std::uint64_t>(size_bytes) / SIZE_MESSAGE},
        keep_{keep_shm_file} {
    if (limit_ == 0) throw ShmException{C_COMMONS_SHM_CREATION_ERROR, "the size holds no message"};
    // There are eight segments; each may end with room for less than one message. Claims of writers
    // that died take room, but no place.
    constexpr std::uint64_t kLargest =
        leat::detail::granules_for(MESSAGE_CONTENT_SIZE) * leat::detail::kGranule;
    const std::string topic_name = !name.empty() && name[0] == '/' ? name.substr(1) : name;
    auto topic = leat::Topic::open_or_create(
        topic_name,
        {.capacity_bytes = (limit_ + 8 + kRoomForTheDead) * kLargest, .retain_all = true});
    if (!topic) throw ShmException{C_COMMONS_SHM_CREATION_ERROR, leat::describe(topic.error())};
    topic_.emplace(std::move(*topic));
  }
  ShmFifo(const ShmFifo&) = delete;
  ShmFifo& operator=(const ShmFifo&) = delete;
  virtual ~ShmFifo() {
    const std::string name = topic_->name();
    publisher_.reset();
    subscriber_.reset();
    topic_.reset();
    // Others that have it open can still read what is there, as with an unlinked file.
    if (!keep_) (void)leat::Topic::delete_topic(name, {.force = true});
  }

  // Appends a message. Throws C_COMMONS_SHM_MESSAGE_TOO_LARGE for a length below 0 or over 1024,
  // and C_COMMONS_SHM_FULL when the log is full; the log is then unchanged. Never waits.
  void write(const char* message, int length) {
    if (length < 0 || length > MESSAGE_CONTENT_SIZE) {
      throw ShmException{C_COMMONS_SHM_MESSAGE_TOO_LARGE, "a message has 0 to 1024 bytes"};
    }
    if (!publisher_) {
      auto publisher = topic_->publisher({.offset_limit = [this] { return offset_limit(); }});
      if (!publisher) throw ShmException{C_COMMONS_SHM_FAILED, leat::describe(publisher.error())};
      publisher_.emplace(std::move(*publisher));
    }
    const auto offset = publisher_->publish(leat::Bytes{message, static_cast<std::size_t>(length)},
                                            leat::Deadline::immediate());
    if (offset.error() == leat::Errc::full)
      throw ShmException{C_COMMONS_SHM_FULL, "the log is full"};
    if (!offset) throw ShmException{C_COMMONS_SHM_FAILED, leat::describe(offset.error())};
    ++written_;
  }

  // Reads the next message for this object, beginning with the oldest. At the end of the log
  // returns false, and `buffer` is empty: length and number 0. Never waits for a message. Throws
  // C_COMMONS_SHM_FAILED.
  bool read(shm_fifo_message& buffer) {
    if (!subscriber_) {
      auto subscriber = topic_->subscriber({.from = leat::From::beginning, .spin = kNoTime});
      if (!subscriber) throw ShmException{C_COMMONS_SHM_FAILED, leat::describe(subscriber.error())};
      subscriber_.emplace(std::move(*subscriber));
    }
    buffer.status = 0;
    while (true) {
      bool found = false;
      auto count = subscriber_->poll(1, [&](const leat::Record& record) {
        found = true;
        const std::size_t length = std::min<std::size_t>(record.value.size(), MESSAGE_CONTENT_SIZE);
        fill(buffer, record.value.data(), length);
        buffer.message_number = ++read_;
      });
      if (found) return true;
      if (!count && !(count.error() == leat::Errc::deleted)) {
        throw ShmException{C_COMMONS_SHM_FAILED, leat::describe(count.error())};
      }
      // Nothing, or a hole. Waiting repairs the hole if its writer is dead.
      if (!count || *count != 0 || !subscriber_->wait(kNoTime)) break;
    }
    fill(buffer, nullptr, 0);
    buffer.message_number = 0;
    return false;
  }

  // Reads the next message into a new one, which the caller deletes (`delete &message`), as in
  // ShmFifo. Throws C_COMMONS_SHM_NO_MESSAGE at the end of the log.
  shm_fifo_message& read() {
    auto message = std::make_unique<shm_fifo_message>();
    if (!read(*message)) throw ShmException{C_COMMONS_SHM_NO_MESSAGE, "no message"};
    return *message.release();
  }

  // Number of messages that this object has written.
  long num_messages() const noexcept { return written_; }

 private:
  static constexpr std::chrono::nanoseconds kNoTime{1};
  static constexpr std::uint64_t kRoomForTheDead = 1024;  // Claims of the largest size.

  // The publisher's offset limit: the first offset that has no place. Called when the publisher has
  // reached the last result, so gaps are searched only when all other places are taken.
  std::uint64_t offset_limit() {
    if (std::exchange(is_asked_again_, true)) gaps_.check(*topic_);
    return limit_ + gaps_.count_from(0);
  }

  static void fill(shm_fifo_message& buffer, const void* content, std::size_t length) noexcept {
    buffer.value_length = static_cast<std::int64_t>(length);
    if (length != 0) std::memcpy(buffer.content, content, length);
    std::memset(buffer.content + length, 0, sizeof(buffer.content) - length);
  }

  std::uint64_t limit_;
  bool keep_;
  std::optional<leat::Topic> topic_;
  std::optional<leat::Publisher> publisher_;    // Made by the first write.
  std::optional<leat::Subscriber> subscriber_;  // Made by the first read.
  leat::compat::Gaps gaps_;                     // After topic_, which it reads.
  bool is_asked_again_ = false;
  std::int64_t read_ = 0;
  long written_ = 0;
};

}  // namespace ccommons
