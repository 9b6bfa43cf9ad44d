// LightQ's protocol, for a broker: administration as JSON, and data ports for ZeroMQ's clients and raw sockets.
//
//     auto broker = Broker::start(config, {lightq::protocol_kind()}, show_password);
#pragma once

#include "broker/protocol.hpp"

namespace leat::broker::lightq {

// The section of its settings, and the owner of its values in the store.
inline constexpr char kProtocol[] = "lightq";
// The consumer group that pullers share.
inline constexpr char kGroup[] = "lightq";
// As whom the broker's administrator comes.
inline constexpr char kAdminUser[] = "lightq_admin";

ProtocolKind protocol_kind();

}  // namespace leat::broker::lightq
