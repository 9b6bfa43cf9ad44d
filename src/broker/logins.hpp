// Checks the credentials of the broker's clients: known ones at once, others with a hash on another thread.
//
//     logins.check({Origin{peer}, user, "topic/news", topic.verifier}, Secret{password}, [=](Verdict verdict) { … });
//
// A wrong password takes as long as a right one, an unknown topic as long as a known one, and each address may be wrong
// five times a second (login_limits.hpp). Right ones do not count: when hundreds of clients of one address reconnect at
// once, they wait for each other. The same credentials, sent by many of them, are hashed once.
// Belongs to the thread of its event loop, on which it calls back.
#pragma once

#include <boost/asio/io_context.hpp>
#include <deque>
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
    Origin origin;
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
  struct Waiting {
    Question question;
    Secret password;
    Done done;
  };
  static constexpr std::size_t kMostWaiting = 4096;

  // False if it has to wait until the address has fewer under way.
  bool begin(Waiting& one);
  void finish(const KnownCredentials::CredentialDigest& digest, const Question& question,
              const Outcome<bool>& is_right);

  boost::asio::io_context& loop_;
  LoginLimits limits_;
  KnownCredentials known_;
  std::map<KnownCredentials::CredentialDigest, std::vector<Done>> pending_;
  // Of an origin: how many hashes are under way, and who waits for them to end.
  std::map<Origin, int> hashing_;
  std::map<Origin, std::deque<Waiting>> waiting_;
  std::size_t waiting_count_ = 0;
  PasswordWorker worker_;  // Last: its callbacks use the others.
};

}  // namespace leat::broker
