// Checks the credentials of the broker's clients: known ones at once, others with a hash on another thread.
//
//     logins.check({address, user, "topic/news", topic.verifier}, Secret{password}, [=](Verdict verdict) { … });
//
// A wrong password takes as long as a right one, an unknown topic as long as a known one, and each address may be wrong five times
// a second (login_limits.hpp). The same credentials, sent by many clients that reconnect at once, are hashed once.
// Belongs to the thread of its event loop, on which it calls back.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "broker/known_credentials.hpp"
#include "broker/login_limits.hpp"
#include "broker/password_worker.hpp"

namespace leat::broker {

class Logins {
 public:
  enum class Verdict {
    right,
    wrong,
    too_many,  // The address was wrong too often; nothing was checked.
    busy,      // Too many wait for a hash.
  };
  using Done = std::function<void(Verdict)>;

  struct Question {
    boost::asio::ip::address address;
    std::string user;
    std::string scope;  // What the password is for.
    // None: there is nothing that the password could be right for.
    std::optional<Verifier> verifier;
  };

  explicit Logins(boost::asio::io_context& loop) : loop_{loop} {}

  // May call back before it returns.
  void check(const Question& question, Secret password, Done done);
  // Hashes a new password.
  void make(Secret password, std::function<void(Outcome<Verifier>)> done);
  void forget(std::string_view user) { known_.forget(user); }
  // Answers `busy` to all who wait.
  void stop() { worker_.stop(); }

 private:
  void finish(const KnownCredentials::CredentialDigest& digest, const Question& question,
              const Outcome<bool>& is_right);

  boost::asio::io_context& loop_;
  LoginLimits limits_;
  KnownCredentials known_;
  std::map<KnownCredentials::CredentialDigest, std::vector<Done>> pending_;
  PasswordWorker worker_;  // Last: its callbacks use the others.
};

}  // namespace leat::broker
