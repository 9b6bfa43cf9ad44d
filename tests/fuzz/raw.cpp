// What clients with raw framing send to the broker. Any bytes are either refused or taken, without reading beyond their
// end, and always in the same way, wherever the network cuts them. If this failed, anybody who reaches a port could
// crash the broker or make it read foreign memory.
//
// The source is included here so that the fuzzer sees which of its lines an input reaches.
#define FMT_HEADER_ONLY
#include "lightq/server/raw_frame.cpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace leat::broker::raw;
using leat::Bytes;

void require(bool holds) {
  if (!holds) std::abort();
}

// As the broker reads: the bytes that are there lie in memory of exactly their size.
std::vector<std::string> frames_of(std::string_view bytes, std::size_t piece) {
  std::vector<std::string> frames;
  std::string received;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    received.append(bytes.substr(at, piece));
    for (;;) {
      const auto copy = std::make_unique<char[]>(received.size());
      std::copy(received.begin(), received.end(), copy.get());
      const Frame frame = front_frame(Bytes{std::string_view{copy.get(), received.size()}});
      require(frame.needed == 0 || frame.needed > received.size());
      if (frame.needed != 0) break;
      require(frame.payload.size() == frame.length);
      frames.emplace_back(frame.payload.text());
      received.erase(0, kLengthBytes + frame.length);
    }
  }
  return frames;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view input{reinterpret_cast<const char*>(data) + 1, size - 1};
  const auto hello = parse_hello(input);
  if (hello) {
    require(hello->token.size() <= input.size());
    require(!hello->acknowledges || hello->role == Role::puller);
  }
  require(frames_of(input, 1 + data[0] % 7) == frames_of(input, std::max<std::size_t>(size, 1)));
  std::string written;
  append_frame(written, Bytes{input});
  require(frames_of(written, 1 + data[0] % 7) == std::vector{std::string{input}});
  return 0;
}
