#include "inbox.hpp"

#include <cstring>

#include "lightq/wire/raw_frame.hpp"

namespace leat::lightq {

Outcome<bool> Inbox::read(Connection& connection) {
  constexpr std::size_t kLeast = 64 * 1024;
  if (bytes_.empty()) bytes_.resize(kLeast);
  if (begin_ != 0) {
    std::memmove(bytes_.data(), bytes_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == bytes_.size()) bytes_.resize(2 * bytes_.size());
  const auto count = connection.receive_some(bytes_.data() + end_, bytes_.size() - end_);
  if (!count) return count.problem();
  end_ += *count;
  return *count != 0;
}

Outcome<void> Inbox::wait(Connection& connection, const Patience& patience,
                          const std::string& what) {
  const auto came = read(connection);
  if (!came) return came.problem();
  if (*came || connection.wait_readable(patience)) return {};
  return connection.gave_up(patience, what);
}

Outcome<std::optional<Bytes>> Inbox::take_frame(std::size_t limit, const std::string& sender) {
  const Frame frame = front_frame(bytes());
  if (frame.length > limit) {
    return Problem{Errc::corrupt, sender + " sends a message of " + std::to_string(frame.length) +
                                      " bytes, and " + std::to_string(limit) +
                                      " is the most there can be: is it a broker?"};
  }
  if (frame.needed != 0) return std::optional<Bytes>{};
  drop(kLengthBytes + frame.length);
  return std::optional<Bytes>{frame.payload};
}

std::optional<std::uint64_t> Inbox::take_count() noexcept {
  if (bytes().size() < kCountBytes) return std::nullopt;
  const auto count = little_endian<std::uint64_t>(bytes().data());
  drop(kCountBytes);
  return count;
}

}  // namespace leat::lightq
