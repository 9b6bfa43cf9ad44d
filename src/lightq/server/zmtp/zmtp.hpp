// The server's side of one ZeroMQ connection: greeting, login, messages in and out. No sockets, no threads, no
// clock: bytes in, events and bytes out.
//
//     zmtp::Session session{{.role = zmtp::Role::pull}};
//     session.start(out);
//     for (Bytes bytes = received; ;) {               // Then keep `bytes`, which is what is left.
//       const zmtp::Event event = session.next(bytes, out);
//       switch (event.kind) {
//         case zmtp::Event::Kind::message: handle(event.body); continue;
//         case zmtp::Event::Kind::need_more: receive(session.needed()); break;
//         …
//
// Clients are libzmq 4, pyzmq and whatever else speaks ZMTP 3.0 or newer. They may log in with PLAIN, and if
// that is allowed come without a password (NULL), both at one port: we send our version, read the client's whole
// greeting, and only then name the mechanism, which is the client's.
//
// The caller owns the buffer that it receives into. Bodies are views of it, never copies. It must be able to
// hold needed() bytes in one piece: at most kLongHeaderBytes more than the limits say. After a login, the
// password still lies there.
//
// Nothing that a client sends is trusted. A client that breaks the protocol gets Kind::failed, for ever. The
// caller then sends what is in `out`, ends its sending side, and reads until the client closes, or for a short
// time: closing at once could discard what is still on its way, such as the reason of a refusal.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "leat/record.hpp"
#include "zmtp_frame.hpp"

namespace leat::broker::zmtp {

// What we are towards the client: pull takes messages from PUSH, push sends to PULL, pub sends to SUB and XSUB
// what they subscribed to, rep answers REQ and DEALER.
enum class Role : std::uint8_t { pull, push, pub, rep };

struct Rules {
  Role role = Role::pull;
  bool allows_null = false;                  // clients without user and password
  std::size_t max_message_bytes = 1u << 20;  // of one part, to pull and rep
  std::size_t max_command_bytes = 4096;  // also of the envelope of a request, and of a subscription
                                         // that counts
};

struct Event {
  enum class Kind : std::uint8_t {
    need_more,    // read on until needed() bytes are there
    credentials,  // the client wants to log in: accept() or refuse() what credentials() are
    waiting,      // no more before accept(), refuse() or reply()
    ready,        // the client is logged in, and peer() is what it said of itself
    message,  // a part: `body`, and if `more`, others of the same message follow. rep: only the first part of
              // a request; a second event, which is empty, says that the last one has come
    subscribe,  // to what begins with `body`; what is subscribed twice is unsubscribed twice
    unsubscribe,
    failed,  // close the connection: error() says why
  };

  Kind kind = Kind::need_more;
  bool more = false;
  Bytes body = {};  // of the received bytes
};

struct Credentials {
  std::string_view user;
  std::string_view password;
};

struct Peer {
  std::string_view socket_type;  // PUSH, PULL, SUB, XSUB, REQ or DEALER
  std::string identity;          // usually empty
};

enum class Refusal : std::uint16_t {
  later = 300,  // The client is not told, only cut off, and connects again.
  wrong_credentials = 400,
  internal_error = 500,
};

class Session {
 public:
  explicit Session(const Rules& rules) : rules_{rules} {}

  // Appends what both sides send first. May come after the first received bytes: a client's first byte is 0xFF.
  void start(std::string& out);

  // Takes the first event off `bytes`, and appends to `out` what is to be sent for it. Small enough to be
  // inlined for what comes by millions: messages to pull.
  Event next(Bytes& bytes, std::string& out) {
    const auto header = passes_messages_ ? read_header(bytes) : std::nullopt;
    if (header && byte_at(bytes, 0) <= (kMore | kLong) &&
        header->body_bytes <= rules_.max_message_bytes &&
        header->body_bytes <= bytes.size() - header->header_bytes) [[likely]] {
      const Bytes body = bytes.subspan(header->header_bytes, header->body_bytes);
      const bool more = (byte_at(bytes, 0) & kMore) != 0;
      bytes = bytes.subspan(header->header_bytes + header->body_bytes);
      return {Event::Kind::message, more, body};
    }
    return next_of_any_kind(bytes, out);
  }

  // After Kind::need_more: how many bytes must be there, counted from the first that was not taken.
  std::size_t needed() const { return needed_; }

  // After Kind::credentials, as long as the received bytes stay where they are.
  const Credentials& credentials() const { return credentials_; }
  void accept(std::string& out);
  void refuse(Refusal refusal, std::string& out);

  // The answer to a request, of which the last part was handed out; role rep.
  void reply(Bytes body, std::string& out);

  const Peer& peer() const { return peer_; }
  // Some parts of a message have come, and others have not.
  bool is_within_message() const { return in_message_ || !envelope_.empty(); }

  // Unasked, an answer to a PING, so that a client that waits for one knows that we are there: while nothing is read from
  // it, its PING is not seen. Appends nothing unless it may_ping().
  void append_sign_of_life(std::string& out) const;
  // The client is logged in and knows heartbeats.
  bool may_ping() const noexcept;
  // The client has sent a PING.
  bool has_pinged() const noexcept { return pings_; }

  // The client wants to be cut off when it sends nothing for that long; 0 if it did not say.
  std::chrono::milliseconds silence_limit() const { return silence_limit_; }

  // After Kind::failed: one sentence without a period.
  const std::string& error() const { return error_; }

 private:
  enum class State : std::uint8_t {
    greeting,  // waits for the client's greeting
    hello,     // PLAIN: waits for user and password
    decision,  // PLAIN: waits for accept() or refuse()
    initiate,  // PLAIN: waits for what the client is
    ready,     // NULL: waits for what the client is
    traffic,
    reply,  // waits for reply()
    failed,
  };
  struct Frame {
    Bytes body;
    bool more;
  };

  Event next_of_any_kind(Bytes& bytes, std::string& out);
  // These return an event for the caller, or none to go on.
  std::optional<Event> on_greeting(Bytes& bytes, std::string& out);
  std::optional<Event> on_mechanism(std::string_view mechanism, std::uint8_t minor,
                                    std::string& out);
  std::optional<Event> on_bytes(Bytes& bytes, std::string& out);
  std::optional<Event> on_command(Bytes body, std::string& out);
  std::optional<Event> on_hello(Bytes data, std::string& out);
  std::optional<Event> on_metadata(Bytes data, std::string& out);
  std::optional<Event> on_command_in_traffic(std::string_view name, Bytes data, std::string& out);
  std::optional<Event> on_ping(Bytes data, std::string& out);
  std::optional<Event> on_message(const Frame& frame, std::string& out);
  std::optional<Event> on_request(const Frame& frame, std::string& out);

  std::string_view expected_command() const;
  std::optional<std::string> why_not_frame(std::uint8_t flags) const;
  std::size_t max_body_bytes(bool is_command) const;
  // Whether a frame is read and thrown away, without a buffer for it: it has more than `most` bytes, and libzmq would send
  // it again and again; or it is a further part of a request.
  bool is_skipped(const FrameHeader& header, bool is_command, std::size_t most) const;
  Event on_request_end();
  Event need(std::size_t bytes);
  Event fail(std::string reason, std::string& out);
  void append_error(std::string_view reason, std::string& out) const;

  Rules rules_;
  State state_ = State::greeting;
  bool passes_messages_ = false;  // state traffic, role pull: messages need not be looked at
  // pub and rep: further parts of the message follow; rep: after the envelope
  bool in_message_ = false;
  bool misspells_error_ = false;   // PLAIN, and the client seems to be libzmq
  bool knows_heartbeats_ = false;  // Has sent a PING, or speaks ZMTP 3.1
  bool pings_ = false;
  std::size_t needed_ = 0;
  std::uint64_t skip_ = 0;     // Bytes of a frame that nobody wants.
  bool has_request_ = false;   // rep: the first part was handed out, others follow
  bool is_last_part_ = false;  // rep: the request ends with the frame that is skipped
  std::chrono::milliseconds silence_limit_{0};
  Credentials credentials_;
  Peer peer_;
  std::string envelope_;  // rep: what came before the request, as frames to send before the reply
  std::string error_;
};

}  // namespace leat::broker::zmtp
