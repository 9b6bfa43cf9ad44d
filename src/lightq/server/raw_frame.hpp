// Raw framing, for clients without ZeroMQ: each message behind its length, in the bytes of lightq/wire/raw_frame.hpp.
//
// It is how LightQ sent messages to `socket` clients. The first frame of a client that is no unmodified one of LightQ
// is a hello: a JSON object, which the broker answers with another.
//
//     {"type": "pub", "token": "…"}                              a producer
//     {"type": "pull", "token": "…", "acknowledge": true}        a puller that says what it is done with
//     {"status": "ok", "topic": "news"}
#pragma once

#include <string>
#include <string_view>

#include "lightq/wire/raw_frame.hpp"
#include "outcome/outcome.hpp"

namespace leat::broker::raw {

using leat::lightq::append_frame;
using leat::lightq::append_number;
using leat::lightq::Frame;
using leat::lightq::front_frame;
using leat::lightq::kCountBytes;
using leat::lightq::kLengthBytes;
using leat::lightq::kMaxHello;
using leat::lightq::little_endian;

enum class Role { producer, puller, subscriber };

struct Hello {
  Role role = Role::puller;
  std::string token = {};     // Empty: none.
  bool acknowledges = false;  // A puller.
};

//   invalid_argument   with a sentence for the client
Outcome<Hello> parse_hello(std::string_view text);

}  // namespace leat::broker::raw
