// What ZeroMQ's clients send to the broker. Any bytes are either refused or taken, without reading beyond their
// end, without needing more memory than the limits say, and always in the same way, wherever the network cuts
// them. If this failed, anybody who reaches a port could crash the broker or make it read foreign memory.
//
// The sources are included here so that the fuzzer sees which of their lines an input reaches.
#define FMT_HEADER_ONLY
#include "lightq/server/zmtp/zmtp.cpp"
#include "lightq/server/zmtp/zmtp_frame.cpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/zmtp_trace.hpp"

namespace {

using namespace leat::broker::zmtp;
using namespace std::string_literals;

std::string greeting(std::string_view mechanism, char minor) {
  std::string result = "\xFF\0\0\0\0\0\0\0\1\x7F\3"s + minor;
  append_mechanism(result, mechanism);
  return result;
}

// Most inputs begin after the greeting or the login, which they would hardly guess.
std::string beginning(Role role, unsigned choice) {
  std::string metadata;
  append_property(metadata, "Socket-Type", partners(role).clients[0]);
  std::string result;
  switch (choice % 5) {
    case 0: return "";
    case 1: return greeting("PLAIN", 1);
    case 2: return greeting("NULL", 0);
    case 3:
      result = greeting("PLAIN", 0);
      append_command(result, "HELLO", "\1u\5right"s);
      append_command(result, "INITIATE", metadata);
      return result;
    default: break;
  }
  result = greeting("NULL", 1);
  append_command(result, "READY", metadata);
  return result;
}

// Pieces of pseudorandom sizes, most of them small.
void feed_in_pieces(Trace& trace, std::string_view bytes, unsigned seed) {
  while (!bytes.empty()) {
    seed = seed * 1103515245 + 12345;
    const unsigned most = (seed >> 16) % 8 == 0 ? 300 : 12;
    const std::string_view piece = bytes.substr(0, 1 + (seed >> 20) % most);
    trace.feed(piece);
    bytes.remove_prefix(piece.size());
  }
}

void check_message(std::string_view first, std::string_view second) {
  std::string bytes = beginning(Role::pull, 4);
  append_message(bytes, first, second);
  Trace trace{{.role = Role::pull, .allows_null = true}};
  trace.feed(bytes);
  require(trace.events ==
              std::vector{"ready PUSH "s, "part "s.append(first), "message "s.append(second)},
          "reads what it writes");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  const auto role = static_cast<Role>(data[0] & 3);
  const bool late = (data[0] & 4) != 0;
  const Rules rules{.role = role,
                    .allows_null = (data[0] & 8) == 0,
                    .max_message_bytes = (data[0] & 16) == 0 ? 500u : 5u,
                    .max_command_bytes = 300};
  const std::string_view input{reinterpret_cast<const char*>(data) + 3, size - 3};
  const std::string bytes = beginning(role, data[1]).append(input);

  Trace whole{rules};
  whole.feed(bytes).finish();
  Trace pieces{rules, late};
  feed_in_pieces(pieces, bytes, data[2]);
  pieces.finish();
  Trace needed{rules, late};
  needed.feed_what_is_needed(bytes).finish();
  for (const Trace* other : {&pieces, &needed}) {
    require(other->events == whole.events, "the same events, however the bytes are cut");
    require(other->out == whole.out, "the same answers, however the bytes are cut");
  }
  check_message(input.substr(0, data[2]),
                input.substr(std::min<std::size_t>(data[2], input.size())));
  return 0;
}
