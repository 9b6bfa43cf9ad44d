// A connection at a topic's raw port: producers, pullers and subscribers with raw framing (raw_frame.hpp).
//
//     connections.start(make_raw_stream(std::move(socket), topic, gate, limits));
//
// A client that says nothing for a moment is a puller of LightQ, which sends nothing; it gets messages if it needs no token.
// A producer is told, as 8 bytes in little-endian order, how many of its messages are in the topic, whenever that
// changed. A puller that acknowledges tells in the same way how many messages it is done with.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "broker/data_role.hpp"
#include "broker/lightq/raw_frame.hpp"

namespace leat::broker::lightq {

// Decides about one client.
struct RawGate {
  // Whether a client at this address needs no token.
  std::function<bool(const Stream::Address&, Access)> is_welcome;
  // Whose token it is; none if it is no right one.
  std::function<std::optional<std::string>(const std::string& token, Access)> user_of;
  std::chrono::milliseconds handshake_time{10'000};
  std::size_t max_message_bytes = 1u << 20;
};

std::shared_ptr<Stream> make_raw_stream(Stream::Socket socket, TopicPtr topic, RawGate gate);

}  // namespace leat::broker::lightq
