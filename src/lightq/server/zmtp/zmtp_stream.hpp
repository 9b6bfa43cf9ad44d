// A connection that speaks ZMTP, up to the point where its client is logged in.
//
// Of a data port: user and password are those of the topic. Without them a client may come if the topic is open, or if its address
// has joined. Who is wrong is told so; who was wrong too often, or comes without having joined, is cut off,
// and libzmq tries again later.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "broker/auth/logins.hpp"
#include "broker/crypto/secret.hpp"
#include "broker/net/stream.hpp"
#include "broker/topic/topic_client.hpp"
#include "zmtp.hpp"

namespace leat::broker::lightq {

// Decides about one client.
struct Authenticator {
  // Whether clients without password may try to come.
  bool allows_null = false;
  // With a password.
  std::function<void(const Logins::Asker&, const std::string& user, Secret password, Logins::Done)>
      check;
  // The version of the user's password, another one after each change; 0: none is needed; none: the user may not come.
  std::function<std::optional<std::int64_t>(const std::string& user)> version_of;
  // Without one: as whom the address has joined; none: refused.
  std::function<std::optional<Principal>(const Stream::Address&)> authorize_address;
  std::chrono::milliseconds handshake_time{10'000};
};

class ZmtpStream : public Stream {
 public:
  // A client that does not log in soon is cut off.
  void begin() override;

 protected:
  ZmtpStream(Accepted accepted, const zmtp::Rules& rules, const Authenticator& authenticator)
      : Stream{std::move(accepted)}, session_{rules}, authenticator_{authenticator} {}

  // Says the first bytes of the greeting. At a port of ZeroMQ alone this need not wait for the client's.
  void greet();
  std::size_t on_bytes(Bytes& bytes) override;

  // Logged in. False: as on_message().
  virtual bool on_ready() = 0;
  // False: take no more before resume().
  virtual bool on_message(Bytes body, bool more) = 0;
  virtual void on_subscription(Bytes prefix, bool is_new) {
    (void)prefix;
    (void)is_new;
  }
  // There is no whole message any more. False: as on_message().
  virtual bool on_idle() { return true; }

  // Who logged in, or has joined; empty: nobody was asked. And the version of the password.
  const std::string& user() const noexcept { return user_; }
  std::int64_t version() const noexcept { return version_.value_or(0); }
  zmtp::Session& session() noexcept { return session_; }

 private:
  std::size_t take(Bytes& bytes);
  void on_paused() override;
  // While nothing is read from the client.
  void show_life(std::chrono::milliseconds after);
  bool may_show_life();
  // The client wants to be cut off when it is silent for a time.
  void watch_silence();
  void check_silence();
  void on_silence();
  void check_credentials();
  void on_verdict(Logins::Verdict verdict);
  bool let_in();

  using Clock = std::chrono::steady_clock;

  zmtp::Session session_;
  Authenticator authenticator_;
  std::unique_ptr<Timer> life_;  // Null before the first pause.
  std::chrono::milliseconds life_after_{0};
  std::size_t unread_then_ = 0;            // At the last sign of life.
  std::unique_ptr<PatientTimer> silence_;  // Null unless the client said a limit.
  Clock::time_point heard_at_;
  std::uint64_t heard_bytes_ = 0;
  Clock::time_point check_at_;  // When silence_ is due.
  bool has_started_ = false;
  bool has_password_ = false;
  std::string user_;
  std::optional<std::int64_t> version_;
};

}  // namespace leat::broker::lightq
