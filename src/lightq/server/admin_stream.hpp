// A connection at LightQ's admin port: ZMTP REQ, or JSON objects behind their length, 4 bytes in network byte order.
// Its first byte tells which: 0xFF or 0.
//
//     connections.start(make_admin_stream(std::move(accepted), admin, config));
#pragma once

#include <memory>

#include "admin.hpp"

namespace leat::broker::lightq {

// `admin` and `config` must outlive it.
std::shared_ptr<Stream> make_admin_stream(Accepted accepted, Admin& admin, const Config& config);

}  // namespace leat::broker::lightq
