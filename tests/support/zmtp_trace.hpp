// Plays the bytes of a client to a zmtp::Session, piece by piece, and writes down what comes of it. However the
// bytes are cut, the events and the answers must be the same. Used by the tests and by the fuzzer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "lightq/server/zmtp/zmtp.hpp"

namespace leat::broker::zmtp {

// A broken promise of the session; a program that is not a test can check it as well.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "zmtp::Session breaks a promise: %s\n", what);
  std::abort();
}

class Trace {
 public:
  // Logins with the password "right" are accepted; requests are answered with their own first part. Late answers
  // are given only when the next piece arrives.
  explicit Trace(const Rules& rules, bool answers_late = false)
      : rules_{rules}, answers_late_{answers_late}, session_{rules} {
    session_.start(out);
  }

  Trace& feed(std::string_view piece) {
    if (is_due_) answer();
    received_ += piece;
    run();
    return *this;
  }

  Trace& feed_each_byte(std::string_view bytes) {
    for (const char& byte : bytes) feed({&byte, 1});
    return *this;
  }

  // Pieces of exactly what the session says that it needs.
  Trace& feed_what_is_needed(std::string_view bytes) {
    while (!bytes.empty() && !has_failed_) {
      const std::size_t missing = is_due_ ? 0 : session_.needed() - received_.size();
      const std::string_view piece = bytes.substr(0, std::max<std::size_t>(missing, 1));
      feed(piece);
      bytes.remove_prefix(piece.size());
    }
    return *this;
  }

  Trace& finish() {
    while (is_due_) {
      answer();
      run();
    }
    return *this;
  }

  Session& session() { return session_; }
  std::size_t left() const { return received_.size(); }

  std::vector<std::string> events;  // "message a", "part a", "subscribe a", "failed why", …
  std::string out;

 private:
  // Each step sees a copy of the exact size, so that AddressSanitizer sees the first byte that is read too far.
  void run() {
    for (;;) {
      const std::vector<std::byte> exact(Bytes{received_}.begin(), Bytes{received_}.end());
      Bytes rest{exact};
      const Event event = session_.next(rest, out);
      require(rest.empty() || rest.data() + rest.size() == exact.data() + exact.size(),
              "takes from the front");
      const bool goes_on = note(event, exact, rest);
      received_.erase(0, received_.size() - rest.size());
      if (!goes_on) return;
    }
  }

  // Whether more events may follow.
  bool note(const Event& event, Bytes all, Bytes rest) {
    require(
        event.body.empty() || (event.body.data() >= all.data() &&
                               event.body.data() + event.body.size() <= all.data() + all.size()),
        "bodies are views of the received bytes");
    const std::string body{event.body.text()};
    switch (event.kind) {
      case Event::Kind::need_more: {
        const std::size_t most =
            std::max({rules_.max_message_bytes, rules_.max_command_bytes, std::size_t{64}});
        require(session_.needed() > rest.size(), "needs more than there is");
        require(session_.needed() <= most + kLongHeaderBytes, "needs no more than the limits say");
        return false;
      }
      case Event::Kind::credentials:
        password_ = session_.credentials().password;
        events.push_back("credentials " + std::string{session_.credentials().user} + " " +
                         password_);
        return must_answer();
      case Event::Kind::waiting: require(is_due_, "waits only for an answer"); return false;
      case Event::Kind::ready:
        events.push_back("ready " + std::string{session_.peer().socket_type} + " " +
                         session_.peer().identity);
        return true;
      case Event::Kind::message:
        events.push_back((event.more ? "part " : "message ") + body);
        if (!is_in_request_) request_ = body;
        is_in_request_ = event.more;
        return rules_.role != Role::rep || event.more || must_answer();
      case Event::Kind::subscribe: events.push_back("subscribe " + body); return true;
      case Event::Kind::unsubscribe: events.push_back("unsubscribe " + body); return true;
      case Event::Kind::failed:
        if (!has_failed_) events.push_back("failed " + session_.error());
        has_failed_ = true;
        return false;
    }
    std::abort();
  }

  bool must_answer() {
    is_due_ = true;
    if (!answers_late_) answer();
    return true;
  }

  void answer() {
    is_due_ = false;
    if (!session_.peer().socket_type.empty()) {
      session_.reply(request_, out);
    } else if (password_ == "right") {
      session_.accept(out);
    } else {
      session_.refuse(Refusal::wrong_credentials, out);
    }
  }

  Rules rules_;
  bool answers_late_;
  Session session_;
  std::string received_;
  std::string password_;
  std::string request_;
  bool is_in_request_ = false;
  bool is_due_ = false;
  bool has_failed_ = false;
};

}  // namespace leat::broker::zmtp
