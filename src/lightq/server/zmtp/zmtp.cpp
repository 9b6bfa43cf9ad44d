#include "zmtp.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "leat/base/assert.hpp"

namespace leat::broker::zmtp {
namespace {

// The greeting of both sides:
//
//     0      1           9      10      11      12          32          33        64
//     | 0xFF | 8 × any   | 0x7F | major | minor | mechanism | as-server | 31 × 0  |
//
constexpr std::size_t kGreetingBytes = 64;
constexpr std::size_t kSignatureEnd = 9;
constexpr std::size_t kMajor = 10;
constexpr std::size_t kMinor = 11;
constexpr std::size_t kMechanism = 12;
constexpr std::size_t kMechanismBytes = 20;

// What is sent at once; libzmq sends no more than its signature before it has seen ours. With the minor version
// 0, clients send subscriptions as messages; from 1 on as commands, which are understood as well.
constexpr std::string_view kOurSignature{"\xFF\0\0\0\0\0\0\0\0\x7F\3\0", kMechanism};

constexpr std::size_t kMaxPingContext = 16;
constexpr std::size_t kMaxIdentity = 255;
// With more than that to be sent, the client will notice that we are alive without the answer to its ping, and
// one that pings and never reads cannot fill our memory.
constexpr std::size_t kMaxUnsentForPong = 64 * 1024;

using Kind = Event::Kind;

struct Partners {
  std::string_view us;
  std::array<std::string_view, 2> clients;  // The second may be empty.
};

constexpr Partners partners(Role role) {
  switch (role) {
    case Role::pull: return {"PULL", {"PUSH"}};
    case Role::push: return {"PUSH", {"PULL"}};
    case Role::pub: return {"PUB", {"SUB", "XSUB"}};
    case Role::rep: break;
  }
  return {"REP", {"REQ", "DEALER"}};
}

// Why these first bytes of a greeting are refused, even before all are there.
std::optional<std::string> why_not_greeting(Bytes bytes) {
  if (!bytes.empty() && byte_at(bytes, 0) != 0xFF) {
    return "the client does not speak ZMTP 3 (ZeroMQ 4): its first byte is not 0xFF";
  }
  if (bytes.size() > kSignatureEnd && byte_at(bytes, kSignatureEnd) != 0x7F) {
    return "the client does not speak ZMTP 3 (ZeroMQ 4): its signature is wrong";
  }
  if (bytes.size() > kMajor &&
      byte_at(bytes, kMajor) < 3) {  // ZMTP 1.0 writes 0 there, 2.0 writes 1.
    return fmt::format("the client speaks ZMTP {}.0, and at least 3.0 (ZeroMQ 4) is needed",
                       byte_at(bytes, kMajor) == 0 ? 1 : 2);
  }
  return std::nullopt;
}

void append_mechanism(std::string& out, std::string_view mechanism) {
  out.append(mechanism).append(kMechanismBytes - mechanism.size(), '\0');
  out.push_back(mechanism == "PLAIN" ? 1 : 0);  // As server: we check the password.
  out.append(kGreetingBytes - kMechanism - kMechanismBytes - 1, '\0');
}

}  // namespace

void Session::start(std::string& out) { out.append(kOurSignature); }

Event Session::next_of_any_kind(Bytes& bytes, std::string& out) {
  for (;;) {
    switch (state_) {
      case State::failed: return {Kind::failed};
      case State::decision:
      case State::reply: return {Kind::waiting};
      default: break;
    }
    const std::optional<Event> event =
        state_ == State::greeting ? on_greeting(bytes, out) : on_bytes(bytes, out);
    if (event) return *event;
  }
}

// --- Greeting ----------------------------------------------------------------------------------------

std::optional<Event> Session::on_greeting(Bytes& bytes, std::string& out) {
  if (auto reason = why_not_greeting(bytes)) return fail(std::move(*reason), out);
  if (bytes.size() < kGreetingBytes) return need(kGreetingBytes);
  const std::string_view padded = bytes.text().substr(kMechanism, kMechanismBytes);
  const std::string_view mechanism = padded.substr(0, padded.find_last_not_of('\0') + 1);
  const std::uint8_t minor = byte_at(bytes, kMinor);
  bytes = bytes.subspan(kGreetingBytes);
  return on_mechanism(mechanism, minor, out);
}

std::optional<Event> Session::on_mechanism(std::string_view mechanism, std::uint8_t minor,
                                           std::string& out) {
  const bool is_null = mechanism == "NULL" && rules_.allows_null;
  knows_heartbeats_ = minor >= 1;
  append_mechanism(out, is_null ? "NULL" : "PLAIN");  // A mismatch tells libzmq to give up.
  if (is_null) {
    state_ = State::ready;
    return std::nullopt;
  }
  if (mechanism == "PLAIN") {
    state_ = State::hello;
    misspells_error_ = minor >= 1;
    return std::nullopt;
  }
  if (mechanism == "NULL") return fail("the client sends no user and password (PLAIN)", out);
  return fail(
      fmt::format("the client wants the mechanism \"{}\", and {} offered", printable(mechanism),
                  rules_.allows_null ? "PLAIN and NULL are" : "PLAIN is"),
      out);
}

// --- Frames ------------------------------------------------------------------------------------------

std::optional<Event> Session::on_bytes(Bytes& bytes, std::string& out) {
  const auto skipped = static_cast<std::size_t>(std::min<std::uint64_t>(skip_, bytes.size()));
  bytes = bytes.subspan(skipped);
  skip_ -= skipped;
  if (skip_ == 0 && is_last_part_) return on_request_end();
  if (bytes.empty()) return need(skip_ != 0 ? 1 : kShortHeaderBytes);
  const std::uint8_t flags = byte_at(bytes, 0);
  if (auto reason = why_not_frame(flags)) return fail(std::move(*reason), out);
  const auto header = read_header(bytes);
  if (!header) return need((flags & kLong) != 0 ? kLongHeaderBytes : kShortHeaderBytes);

  const bool is_command = (flags & kCommand) != 0;
  const std::size_t most = max_body_bytes(is_command);
  if (is_skipped(*header, is_command, most)) {
    const bool more = (flags & kMore) != 0;
    if (has_request_) {
      is_last_part_ = !more;
    } else if (!is_command) {
      in_message_ = more;
    }
    skip_ = header->header_bytes + header->body_bytes;
    return std::nullopt;
  }
  if (header->body_bytes > most) {
    return fail(fmt::format("a {} of {} bytes, and at most {} are taken",
                            is_command ? "command" : "message part", header->body_bytes, most),
                out);
  }
  const std::size_t frame_bytes = header->header_bytes + header->body_bytes;
  if (bytes.size() < frame_bytes) return need(frame_bytes);
  const Bytes body = bytes.subspan(header->header_bytes, header->body_bytes);
  bytes = bytes.subspan(frame_bytes);
  if (is_command) return on_command(body, out);
  return on_message({body, (flags & kMore) != 0}, out);
}

// A subscription that is longer than any topic's name matches none.
bool Session::is_skipped(const FrameHeader& header, bool is_command, std::size_t most) const {
  if (header.body_bytes > rules_.max_message_bytes) return false;
  if (has_request_) return !is_command;
  return header.body_bytes > most && rules_.role == Role::pub && state_ == State::traffic;
}

std::optional<std::string> Session::why_not_frame(std::uint8_t flags) const {
  if ((flags & ~(kMore | kLong | kCommand)) != 0) {
    return fmt::format("a frame with unknown flags, 0x{:02x}", flags);
  }
  if ((flags & kCommand) != 0 && (flags & kMore) != 0) return "a command in several parts";
  if ((flags & kCommand) != 0 || state_ == State::traffic) return std::nullopt;
  return fmt::format("a message instead of the command {}", expected_command());
}

std::size_t Session::max_body_bytes(bool is_command) const {
  const bool takes_messages = rules_.role == Role::pull || rules_.role == Role::rep;
  return is_command || !takes_messages ? rules_.max_command_bytes : rules_.max_message_bytes;
}

// --- Commands ----------------------------------------------------------------------------------------

std::string_view Session::expected_command() const {
  switch (state_) {
    case State::hello: return "HELLO";
    case State::initiate: return "INITIATE";
    case State::ready: return "READY";
    default: return {};
  }
}

std::optional<Event> Session::on_command(Bytes body, std::string& out) {
  const auto name = take_short_text(body);
  if (!name || name->empty()) return fail("a command without a name", out);
  if (*name == "ERROR") {
    const auto reason = take_short_text(body);
    state_ = State::traffic;  // The client needs no answer.
    return fail(fmt::format("the client gives up: \"{}\"", printable(reason.value_or(""))), out);
  }
  if (state_ == State::traffic) return on_command_in_traffic(*name, body, out);
  if (*name != expected_command()) {
    return fail(fmt::format("the command {} instead of {}", printable(*name), expected_command()),
                out);
  }
  return state_ == State::hello ? on_hello(body, out) : on_metadata(body, out);
}

std::optional<Event> Session::on_hello(Bytes data, std::string& out) {
  const auto user = take_short_text(data);
  const auto password = take_short_text(data);
  if (!user || !password || !data.empty()) return fail("a malformed command HELLO", out);
  credentials_ = {*user, *password};
  state_ = State::decision;
  return Event{Kind::credentials};
}

void Session::accept(std::string& out) {
  LEAT_ASSERT(state_ == State::decision);
  credentials_ = {};
  state_ = State::initiate;
  append_command(out, "WELCOME");
}

void Session::refuse(Refusal refusal, std::string& out) {
  LEAT_ASSERT(state_ == State::decision);
  credentials_ = {};
  state_ = State::failed;
  error_ = refusal == Refusal::later               ? "the login is refused for now"
           : refusal == Refusal::wrong_credentials ? "wrong user or password"
                                                   : "the login could not be checked";
  if (refusal == Refusal::later) return;
  append_error(std::to_string(static_cast<int>(refusal)), out);  // libzmq knows these codes.
}

// Of READY (NULL) and INITIATE (PLAIN): what the client says of itself.
std::optional<Event> Session::on_metadata(Bytes data, std::string& out) {
  const Partners allowed = partners(rules_.role);
  std::optional<std::string_view> type;
  while (!data.empty()) {
    const auto property = take_property(data);
    if (!property) return fail(fmt::format("a malformed command {}", expected_command()), out);
    if (equal_ignoring_case(property->name, "Socket-Type")) type = property->value.text();
    if (equal_ignoring_case(property->name, "Identity")) {
      if (property->value.size() > kMaxIdentity) return fail("an identity of over 255 bytes", out);
      peer_.identity = property->value.text();
    }
  }
  if (!type) return fail("the client does not say which type of socket it has", out);
  const auto* known = std::ranges::find(allowed.clients, *type);
  if (type->empty() || known == allowed.clients.end()) {
    return fail(fmt::format("a socket of type {} cannot use this port, which is for {}{}{}",
                            printable(*type), allowed.clients[0],
                            allowed.clients[1].empty() ? "" : " and ", allowed.clients[1]),
                out);
  }
  peer_.socket_type = *known;  // Not of the received bytes.

  std::string properties;
  append_property(properties, "Socket-Type", allowed.us);
  append_command(out, "READY", properties);
  state_ = State::traffic;
  passes_messages_ = rules_.role == Role::pull;
  return Event{Kind::ready};
}

std::optional<Event> Session::on_command_in_traffic(std::string_view name, Bytes data,
                                                    std::string& out) {
  if (name == "PING") return on_ping(data, out);
  const bool subscribes = name == "SUBSCRIBE";
  if (subscribes || name == "CANCEL") {
    if (rules_.role != Role::pub) return fail("a subscription at a port that is not for SUB", out);
    return Event{subscribes ? Kind::subscribe : Kind::unsubscribe, false, data};
  }
  if (name == "READY" || name == "HELLO" || name == "INITIATE" || name == "WELCOME") {
    return fail(fmt::format("the command {} after the handshake", name), out);
  }
  return std::nullopt;  // PONG, and what later versions invent.
}

std::optional<Event> Session::on_ping(Bytes data, std::string& out) {
  if (data.size() < 2 || data.size() > 2 + kMaxPingContext)
    return fail("a malformed command PING", out);
  silence_limit_ = std::chrono::milliseconds{100 * (byte_at(data, 0) << 8 | byte_at(data, 1))};
  knows_heartbeats_ = pings_ = true;
  if (out.size() <= kMaxUnsentForPong) append_command(out, "PONG", data.subspan(2));
  return std::nullopt;
}

void Session::append_sign_of_life(std::string& out) const {
  if (may_ping()) append_command(out, "PONG");
}

bool Session::may_ping() const noexcept {
  return knows_heartbeats_ && (state_ == State::traffic || state_ == State::reply);
}

// --- Messages ----------------------------------------------------------------------------------------

std::optional<Event> Session::on_message(const Frame& frame, std::string& out) {
  switch (rules_.role) {
    case Role::pull: break;
    case Role::rep: return on_request(frame, out);
    case Role::push: return fail("a message from a socket that may only receive", out);
    case Role::pub: {
      // Subscriptions as ZMTP 3.0 has them. XSUB may send other messages; PUB does not want them.
      const bool is_first = !std::exchange(in_message_, frame.more);
      if (!is_first || frame.body.empty() || byte_at(frame.body, 0) > 1) return std::nullopt;
      const bool subscribes = byte_at(frame.body, 0) == 1;
      return Event{subscribes ? Kind::subscribe : Kind::unsubscribe, false, frame.body.subspan(1)};
    }
  }
  return Event{Kind::message, frame.more, frame.body};
}

// REQ sends an empty frame and then the request, and expects the same before the reply. Before the empty frame
// there may be others: addresses on the way back, through a proxy for example.
std::optional<Event> Session::on_request(const Frame& frame, std::string& out) {
  if (!in_message_) {
    if (!frame.more) return fail("a request without an empty frame before it", out);
    if (envelope_.size() + kLongHeaderBytes + frame.body.size() > rules_.max_command_bytes) {
      return fail(fmt::format("an envelope of over {} bytes", rules_.max_command_bytes), out);
    }
    append_frame(envelope_, frame.body, kMore);
    in_message_ = frame.body.empty();
    return std::nullopt;
  }
  has_request_ = frame.more;
  if (!frame.more) {
    in_message_ = false;
    state_ = State::reply;
  }
  return Event{Kind::message, frame.more, frame.body};
}

// Its further parts were skipped.
Event Session::on_request_end() {
  has_request_ = is_last_part_ = in_message_ = false;
  state_ = State::reply;
  return {Kind::message};
}

void Session::reply(Bytes body, std::string& out) {
  LEAT_ASSERT(state_ == State::reply);
  out.append(std::exchange(envelope_, {}));
  append_message(out, body);
  state_ = State::traffic;
}

// --- Ends of a step ----------------------------------------------------------------------------------

Event Session::need(std::size_t bytes) {
  needed_ = bytes;
  return {Kind::need_more};
}

Event Session::fail(std::string reason, std::string& out) {
  if (!expected_command().empty())
    append_error(reason, out);  // Only a handshake can end like this.
  state_ = State::failed;
  passes_messages_ = false;
  error_ = std::move(reason);
  return {Kind::failed};
}

// With PLAIN, libzmq 4.3 understands no other ERROR than its own, where a slip made one character, 0x5E, of the
// length of the name and the E. To anything else, it reports an unexpected command in place of a wrong password.
// We know libzmq by its version, ZMTP 3.1, which few others announce. It gives up in either case, as they do.
void Session::append_error(std::string_view reason, std::string& out) const {
  std::string data;
  data.push_back(static_cast<char>(std::min(reason.size(), kMaxShortBody)));
  data.append(reason, 0, kMaxShortBody);
  if (misspells_error_) return append_frame(out, "^RROR" + data, kCommand);
  append_command(out, "ERROR", data);
}

}  // namespace leat::broker::zmtp
