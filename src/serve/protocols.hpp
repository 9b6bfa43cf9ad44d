// The protocols that leat-serve speaks. A new one goes in here, and in CMakeLists.txt.
#pragma once

#include "lightq/server/lightq_protocol.hpp"

namespace leat::broker {

inline Protocols all_protocols() { return {lightq::protocol_kind()}; }

}  // namespace leat::broker
