// Checks the credentials of the broker's clients: known ones at once, others with a hash on another thread.
//
//     logins.check({asker, user, "topic/news", topic.verifier}, Secret{password}, [=](Verdict verdict) { … });
//     logins.make({asker.origin, user}, Secret{new_password}, [=](Outcome<Verifier> verifier) { … });
//
// A wrong password takes as long as a right one, an unknown topic as long as a known one, and each origin may be wrong
// five times a second (login_limits.hpp). Right ones do not count. The same credentials, sent by many clients, are hashed
// once. While an origin has no attempts left, a client that was not wrong yet waits for one, in line with those who
// want the same credentials; the lines of an origin take turns, and so do the origins. Whom a full line has no place for is
// told `too_many` ten seconds later, and asks nothing else meanwhile: so each guess costs a connection for that long, and few
// of them keep out nobody (docs/decisions/0034-logins-wait-in-lines.md).
// One hash is under way at a time, so that each turn is one hash. New passwords wait while checks may begin; after four checks
// one new password has its turn. Those who set them take turns as well.
// Belongs to the thread of its event loop, on which it calls back.
#pragma once

#include <boost/asio/io_context.hpp>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "broker/loop/timer.hpp"
#include "known_credentials.hpp"
#include "login_limits.hpp"
#include "password_worker.hpp"

namespace leat::broker {

class Logins {
 public:
  enum class Verdict {
    right,
    wrong,
    too_many,  // The origin was wrong too often, or too many wait; nothing was checked. Comes late.
    busy,      // The broker stops.
  };
  using Done = std::function<void(Verdict)>;

  // The client that asks.
  struct Asker {
    Origin origin;
    // It was not wrong on this connection, so it may wait.
    bool is_first = true;
    // Whether it is still there; empty: yes. One that has gone is told `too_many`, and costs no attempt.
    std::function<bool()> is_there = {};
  };
  struct Question {
    Asker asker;
    std::string user;
    std::string scope;  // What the password is for.
    // None: there is nothing that the password could be right for.
    std::optional<Verifier> verifier;
  };

  // A user who sets new passwords and has been authenticated.
  struct Maker {
    Origin origin;
    std::string user;
    friend auto operator<=>(const Maker&, const Maker&) = default;
  };
  using Made = std::function<void(Outcome<Verifier>)>;

  // Until `too_many` is said.
  static constexpr std::chrono::milliseconds kHoldOff{10'000};
  explicit Logins(boost::asio::io_context& loop, std::chrono::milliseconds hold_off = kHoldOff)
      : loop_{loop}, hold_off_{hold_off}, again_{loop}, refuse_{loop} {}

  // May call back before it returns.
  void check(const Question& question, Secret password, Done done);
  // Hashes a new password. `busy` if 50 of this maker wait.
  void make(const Maker& maker, Secret password, Made done);
  // Answers `busy` to all who wait for a hash.
  void stop() { worker_.stop(); }

 private:
  using Digest = KnownCredentials::CredentialDigest;
  struct Asked {
    Done done;
    std::function<bool()> is_there;
  };
  using AllAsked = std::vector<Asked>;  // By those who sent the same.
  struct Waiting {
    Question question;  // Of the first one.
    Secret password;
    Digest digest;
    AllAsked asked;
  };
  using Line = std::deque<Waiting>;  // For the same credentials, or for what does not exist.
  struct Lines {
    std::map<std::string, Line> by_name;
    std::string last;  // Name of the line that was served last.
    std::size_t count = 0;
  };
  static constexpr std::size_t kMostInLine = 50;  // So many wrong ones take ten seconds.
  static constexpr std::size_t kMostWaiting = 4096;

  static std::string line_of(const Question& question);
  // Without a hash: true if it was answered, or will be with another one.
  bool answer_at_once(Waiting& one);
  void wait(Waiting one);
  // Refuses one of a line: one that has gone, or else one by chance, so that a right one may be among those that stay.
  void make_room(const Origin& origin, const std::string& name);
  static bool is_wanted(const Waiting& one);
  // Says `too_many`, later.
  void refuse(AllAsked asked);
  void refuse_those_due();
  void make_room_of_longest();
  bool has_attempt(const Origin& origin) const;
  // Begins the next hash, unless one is under way.
  void go_on();
  // Each returns false if there was nothing to do.
  bool begin_next();
  bool begin_check();
  bool begin_make();
  // The first of an origin's next line.
  Waiting take(Lines& lines);
  void begin(Waiting one);
  void finish(const Outcome<bool>& is_right);
  // Those who wait with the same credentials.
  AllAsked take_same(const Digest& digest);
  static void answer(const AllAsked& asked, Verdict verdict);

  struct Refused {
    LoginLimits::Time due;
    AllAsked asked;
  };
  struct Making {
    Secret password;
    Made done;
  };

  boost::asio::io_context& loop_;
  const std::chrono::milliseconds hold_off_;
  LoginLimits limits_;
  KnownCredentials known_;
  bool is_hashing_ = false;
  std::optional<Waiting> checking_;  // What is hashed, unless that is a new password.
  // Each of these origins is in turns_ or in resting_. One whose clients have all been answered stays until its turn comes.
  std::map<Origin, Lines> waiting_;
  std::deque<Origin> turns_;                          // The next one first.
  std::multimap<LoginLimits::Time, Origin> resting_;  // Without attempts, until then.
  std::size_t waiting_count_ = 0;
  Timer again_;
  std::map<Maker, std::deque<Making>> making_;
  std::deque<Maker> makers_;     // All of making_, the next one first.
  int checks_in_a_row_ = 0;      // While a new password waits.
  std::deque<Refused> refused_;  // Who is told soonest first.
  Timer refuse_;
  PasswordWorker worker_;  // Last: its callbacks use the others.
};

}  // namespace leat::broker
