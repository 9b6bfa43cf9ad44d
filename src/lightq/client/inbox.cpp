#include "inbox.hpp"

#include <cstring>

#include "lightq/wire/raw_frame.hpp"

namespace leat::lightq {

bool Inbox::read(Connection& connection) {
  constexpr std::size_t kLeast = 64 * 1024;
  if (bytes_.empty()) bytes_.resize(kLeast);
  if (begin_ != 0) {
    std::memmove(bytes_.data(), bytes_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == bytes_.size()) bytes_.resize(2 * bytes_.size());
  const std::size_t count = connection.receive_some(bytes_.data() + end_, bytes_.size() - end_);
  end_ += count;
  return count != 0;
}

std::optional<Bytes> Inbox::take_frame(std::size_t limit, const std::string& sender) {
  const Frame frame = front_frame(bytes());
  if (frame.length > limit) {
    throw Problem{Errc::corrupt, sender + " sends a message of " + std::to_string(frame.length) +
                                     " bytes, and " + std::to_string(limit) +
                                     " is the most there can be: is it a broker?"};
  }
  if (frame.needed != 0) return std::nullopt;
  drop(kLengthBytes + frame.length);
  return frame.payload;
}

std::optional<std::uint64_t> Inbox::take_count() noexcept {
  if (bytes().size() < kCountBytes) return std::nullopt;
  const auto count = little_endian<std::uint64_t>(bytes().data());
  drop(kCountBytes);
  return count;
}

}  // namespace leat::lightq
