#include "broker/logins.hpp"

#include <boost/asio/post.hpp>
#include <utility>

namespace leat::broker {

void Logins::check(const Question& question, Secret password, Done done) {
  Waiting one{question, std::move(password), std::move(done)};
  auto& queue = waiting_[question.origin];
  if (queue.empty() && begin(one)) {
    waiting_.erase(question.origin);
  } else if (waiting_count_ >= kMostWaiting) {
    if (queue.empty()) waiting_.erase(question.origin);
    one.done(Verdict::busy);
  } else {
    queue.push_back(std::move(one));
    ++waiting_count_;
  }
}

bool Logins::begin(Waiting& one) {
  const Question& question = one.question;
  const Verifier verifier = question.verifier.value_or(decoy_verifier());
  const auto digest = known_.digest(question.user, question.scope,
                                    question.verifier ? print_verifier(verifier) : std::string{},
                                    one.password.text());
  if (question.verifier && known_.contains(digest)) {
    one.done(Verdict::right);
    return true;
  }
  const auto same = pending_.find(digest);
  if (same != pending_.end()) {
    same->second.push_back(std::move(one.done));
    return true;
  }
  if (!limits_.take(question.origin, std::chrono::steady_clock::now())) {
    if (hashing_.contains(question.origin)) return false;
    one.done(Verdict::too_many);
    return true;
  }
  auto asked = worker_.check(
      std::move(one.password), verifier, [this, digest, question](Outcome<bool> is_right) {
        boost::asio::post(loop_, [this, digest, question, is_right = std::move(is_right)] {
          finish(digest, question, is_right);
        });
      });
  if (!asked) {
    limits_.give_back(question.origin);
    one.done(Verdict::busy);
    return true;
  }
  pending_[digest].push_back(std::move(one.done));
  ++hashing_[question.origin];
  return true;
}

void Logins::finish(const KnownCredentials::CredentialDigest& digest, const Question& question,
                    const Outcome<bool>& is_right) {
  const bool has_answer = is_right.has_value();
  const bool right = has_answer && *is_right && question.verifier;
  if (right) known_.add(question.user, digest);
  if (right || !has_answer) limits_.give_back(question.origin);
  if (--hashing_[question.origin] == 0) hashing_.erase(question.origin);
  auto answered = pending_.extract(digest);
  if (!answered.empty()) {
    for (const Done& done : answered.mapped())
      done(right ? Verdict::right : has_answer ? Verdict::wrong : Verdict::busy);
  }
  // Answers may have brought new ones, so it is looked up each time.
  for (auto queue = waiting_.find(question.origin); queue != waiting_.end();
       queue = waiting_.find(question.origin)) {
    Waiting one = std::move(queue->second.front());
    queue->second.pop_front();
    --waiting_count_;
    const bool has_begun = begin(one);
    if (!has_begun) {
      waiting_[question.origin].push_front(std::move(one));
      ++waiting_count_;
      return;
    }
    queue = waiting_.find(question.origin);
    if (queue != waiting_.end() && queue->second.empty()) waiting_.erase(queue);
  }
}

void Logins::make(Secret password, std::function<void(Outcome<Verifier>)> done) {
  auto asked = worker_.make(std::move(password), [this, done](Outcome<Verifier> made) {
    boost::asio::post(loop_, [done, made = std::move(made)]() mutable { done(std::move(made)); });
  });
  if (!asked) done(asked.problem());
}

}  // namespace leat::broker
