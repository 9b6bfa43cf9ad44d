// What has come on a connection and was not taken yet, in one piece.
//
//     auto frame = inbox.take_frame(kMaxMessage, connection.name());
//     if (!frame) return frame.problem();
//     if (!*frame) return inbox.wait(connection, patience, "no answer");    // then try again
//
// It grows with what has come, never by what a length says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "connection.hpp"
#include "leat/record.hpp"

namespace leat::lightq {

class Inbox {
 public:
  // Takes what is there, if anything, without waiting. False: there was nothing.
  //   closed
  Outcome<bool> read(Connection& connection);
  // Takes what is there, or waits until there is something to take. `what`: for the sentence if nothing comes.
  //   closed, timeout, stopped
  Outcome<void> wait(Connection& connection, const Patience& patience, const std::string& what);
  // What has come. Valid until the next read().
  Bytes bytes() const noexcept { return {bytes_.data() + begin_, end_ - begin_}; }
  void drop(std::size_t count) noexcept { begin_ += count; }

  // The frame at the front (lightq/wire/raw_frame.hpp), if it is whole; valid until the next read().
  //   corrupt   longer than `limit` bytes; the sentence names `sender`
  Outcome<std::optional<Bytes>> take_frame(std::size_t limit, const std::string& sender);
  // The next 8 bytes, as a number.
  std::optional<std::uint64_t> take_count() noexcept;

 private:
  std::vector<std::byte> bytes_;
  std::size_t begin_ = 0;  // of what was not taken
  std::size_t end_ = 0;
};

}  // namespace leat::lightq
