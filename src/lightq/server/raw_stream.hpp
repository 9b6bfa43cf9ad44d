// A connection at a topic's raw port: producers, pullers and subscribers with raw framing (raw_frame.hpp).
//
//     connections.start(make_raw_stream(std::move(accepted), topic, authenticator, limits));
//
// A client that says nothing for a moment is a puller of LightQ, which sends nothing; it gets messages if it needs no token,
// unless those who have joined from its address all know that they are to say hello.
// A producer is told, as 8 bytes in little-endian order, how many of its messages are in the topic, whenever that
// changed. A puller that acknowledges tells in the same way how many messages it is done with.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "broker/topic/topic_client.hpp"
#include "raw_frame.hpp"

namespace leat::broker::lightq {

// Decides about one client.
struct RawAuthenticator {
  // What lets a client at this address in without a token; none: nothing.
  std::function<std::optional<Principal>(const Stream::Address&, Access)> authorize_address;
  // Whether a client at this address may be one of LightQ, which says no hello.
  std::function<bool(const Stream::Address&)> may_be_silent;
  // What a token is good for; none: nothing.
  std::function<std::optional<Principal>(const std::string& token, Access)> principal_of;
  std::chrono::milliseconds handshake_time{10'000};
  std::size_t max_message_bytes = 1u << 20;
};

std::shared_ptr<Stream> make_raw_stream(Accepted accepted, TopicPtr topic,
                                        RawAuthenticator authenticator);

}  // namespace leat::broker::lightq
