#include "broker/logins.hpp"

#include <boost/asio/post.hpp>
#include <utility>

namespace leat::broker {

void Logins::check(const Question& question, Secret password, Done done) {
  const Verifier verifier = question.verifier.value_or(decoy_verifier());
  const auto digest =
      known_.digest(question.user, question.scope,
                    question.verifier ? print_verifier(verifier) : std::string{}, password.text());
  if (question.verifier && known_.contains(digest)) return done(Verdict::right);
  const auto waiting = pending_.find(digest);
  if (waiting != pending_.end()) return waiting->second.push_back(std::move(done));
  if (!limits_.take(question.address, std::chrono::steady_clock::now()))
    return done(Verdict::too_many);
  auto asked = worker_.check(
      std::move(password), verifier, [this, digest, question](Outcome<bool> is_right) {
        boost::asio::post(loop_, [this, digest, question, is_right = std::move(is_right)] {
          finish(digest, question, is_right);
        });
      });
  if (!asked) {
    limits_.give_back(question.address);
    return done(Verdict::busy);
  }
  pending_[digest].push_back(std::move(done));
}

void Logins::finish(const KnownCredentials::CredentialDigest& digest, const Question& question,
                    const Outcome<bool>& is_right) {
  const bool has_answer = is_right.has_value();
  const bool right = has_answer && *is_right && question.verifier;
  if (right) known_.add(question.user, digest);
  if (right || !has_answer) limits_.give_back(question.address);
  auto waiting = pending_.extract(digest);
  if (waiting.empty()) return;
  for (const Done& done : waiting.mapped())
    done(right ? Verdict::right : has_answer ? Verdict::wrong : Verdict::busy);
}

void Logins::make(Secret password, std::function<void(Outcome<Verifier>)> done) {
  auto asked = worker_.make(std::move(password), [this, done](Outcome<Verifier> made) {
    boost::asio::post(loop_, [done, made = std::move(made)]() mutable { done(std::move(made)); });
  });
  if (!asked) done(asked.problem());
}

}  // namespace leat::broker
