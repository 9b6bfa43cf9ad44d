// The connections at LightQ's data ports: producers (PUSH), pullers (PULL) and subscribers (SUB).
//
//     connections.start(make_data_stream(zmtp::Role::pull, std::move(accepted), topic, authenticator, limits));
//
// Each part of a producer's message is a message of the topic. Pullers get messages of one part; subscribers get two: the
// name of the topic, and the message.
#pragma once

#include <memory>

#include "broker/topic/topic_client.hpp"
#include "lightq/server/zmtp/zmtp_stream.hpp"

namespace leat::broker::lightq {

struct DataLimits {
  std::size_t message_bytes = 1u << 20;
};

std::shared_ptr<Stream> make_data_stream(zmtp::Role role, Accepted accepted, const TopicPtr& topic,
                                         const Authenticator& authenticator,
                                         const DataLimits& limits);

}  // namespace leat::broker::lightq
