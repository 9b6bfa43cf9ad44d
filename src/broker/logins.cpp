#include "broker/logins.hpp"

#include <sodium.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <iterator>
#include <utility>

namespace leat::broker {

std::string Logins::line_of(const Question& question) {
  // Made-up names are no lines of their own: they would make the others wait for longer.
  return question.verifier ? question.scope + '\n' + question.user : std::string{};
}

void Logins::check(const Question& question, Secret password, Done done) {
  const Verifier verifier = question.verifier.value_or(decoy_verifier());
  const auto digest =
      known_.digest(question.user, question.scope,
                    question.verifier ? print_verifier(verifier) : std::string{}, password.text());
  const Origin& origin = question.asker.origin;
  Waiting one{question, std::move(password), digest, {}};
  one.asked.push_back({std::move(done), question.asker.is_there});
  if (answer_at_once(one)) return;
  // One that is under way may give its attempt back.
  const bool may_wait = question.asker.is_first || hashing_.contains(origin) ||
                        (!waiting_.contains(origin) && has_attempt(origin));
  if (!may_wait) return refuse(std::move(one.asked));
  wait(std::move(one));
  go_on();
}

bool Logins::has_attempt(const Origin& origin) {
  const bool has = limits_.take(origin, std::chrono::steady_clock::now());
  if (has) limits_.give_back(origin);
  return has;
}

void Logins::answer(const AllAsked& asked, Verdict verdict) {
  for (const Asked& one : asked) one.done(verdict);
}

bool Logins::answer_at_once(Waiting& one) {
  if (one.question.verifier && known_.contains(one.digest)) {
    answer(std::exchange(one.asked, {}), Verdict::right);
    return true;
  }
  const auto same = pending_.find(one.digest);
  if (same == pending_.end()) return false;
  std::move(one.asked.begin(), one.asked.end(), std::back_inserter(same->second));
  one.asked.clear();
  return true;
}

void Logins::wait(Waiting one) {
  const Origin origin = one.question.asker.origin;
  const std::string name = line_of(one.question);
  Lines& lines = waiting_[origin];
  Line& line = lines.by_name[name];
  const auto same = std::find_if(line.begin(), line.end(),
                                 [&](const Waiting& other) { return other.digest == one.digest; });
  if (same != line.end()) {
    same->asked.push_back(std::move(one.asked.front()));
    return;
  }
  line.push_back(std::move(one));
  ++lines.count;
  ++waiting_count_;
  if (line.size() > kMostInLine) {
    make_room(origin, name);
  } else if (waiting_count_ > kMostWaiting) {
    make_room_of_longest();
  }
}

// Of the origin for which most wait.
void Logins::make_room_of_longest() {
  const auto most = std::max_element(
      waiting_.begin(), waiting_.end(),
      [](const auto& a, const auto& b) { return a.second.count < b.second.count; });
  const auto& lines = most->second.by_name;
  const auto longest = std::max_element(
      lines.begin(), lines.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  make_room(Origin{most->first}, std::string{longest->first});
}

void Logins::make_room(const Origin& origin, const std::string& name) {
  const auto lines = waiting_.find(origin);
  const auto found = lines->second.by_name.find(name);
  Line& line = found->second;
  auto at = std::find_if_not(line.begin(), line.end(), is_wanted);
  if (at == line.end())
    at = line.begin() + ::randombytes_uniform(static_cast<std::uint32_t>(line.size()));
  AllAsked asked = std::move(at->asked);
  line.erase(at);
  if (line.empty()) lines->second.by_name.erase(found);
  if (--lines->second.count == 0) waiting_.erase(lines);
  --waiting_count_;
  refuse(std::move(asked));
}

bool Logins::is_wanted(const Waiting& one) {
  return std::any_of(one.asked.begin(), one.asked.end(),
                     [](const Asked& asked) { return !asked.is_there || asked.is_there(); });
}

void Logins::refuse(AllAsked asked) {
  refused_.push_back({std::chrono::steady_clock::now() + hold_off_, std::move(asked)});
  if (!refuse_.is_running()) refuse_.start(hold_off_, [this] { refuse_those_due(); });
}

void Logins::refuse_those_due() {
  const auto now = std::chrono::steady_clock::now();
  while (!refused_.empty() && refused_.front().due <= now) {
    const AllAsked asked = std::move(refused_.front().asked);
    refused_.pop_front();
    answer(asked, Verdict::too_many);
  }
  if (!refused_.empty()) refuse_.start(refused_.front().due - now, [this] { refuse_those_due(); });
}

void Logins::go_on() {
  while (hashing_count_ < kMostHashing && begin_next()) {
  }
  constexpr std::chrono::milliseconds kAgain{20};
  if (waiting_count_ != 0 && !again_.is_running()) again_.start(kAgain, [this] { go_on(); });
}

bool Logins::begin_next() {
  std::vector<Origin> turns;
  for (const auto& [origin, lines] : waiting_) turns.push_back(origin);
  const auto next = last_ ? std::upper_bound(turns.begin(), turns.end(), *last_) : turns.begin();
  std::rotate(turns.begin(), next, turns.end());
  return std::any_of(turns.begin(), turns.end(),
                     [this](const Origin& origin) { return begin_of(origin); });
}

// True if something was done for it: then it is to be called again.
bool Logins::begin_of(const Origin& origin) {
  if (!waiting_.contains(origin)) return false;
  if (!limits_.take(origin, std::chrono::steady_clock::now())) return false;
  Waiting one = take(origin);
  last_ = origin;
  const bool is_there = is_wanted(one);
  if (is_there && !answer_at_once(one)) {
    begin(std::move(one));
    return true;
  }
  limits_.give_back(origin);
  if (!is_there) refuse(std::move(one.asked));
  return true;
}

Logins::Waiting Logins::take(const Origin& origin) {
  const auto found = waiting_.find(origin);
  Lines& lines = found->second;
  auto line = lines.by_name.upper_bound(lines.last);
  if (line == lines.by_name.end()) line = lines.by_name.begin();
  lines.last = line->first;
  Waiting one = std::move(line->second.front());
  line->second.pop_front();
  if (line->second.empty()) lines.by_name.erase(line);
  if (--lines.count == 0) waiting_.erase(found);
  --waiting_count_;
  return one;
}

void Logins::begin(Waiting one) {
  const Question question = one.question;
  const Digest digest = one.digest;
  auto asked = worker_.check(std::move(one.password), question.verifier.value_or(decoy_verifier()),
                             [this, digest, question](Outcome<bool> is_right) {
                               boost::asio::post(
                                   loop_, [this, digest, question, is_right = std::move(is_right)] {
                                     finish(digest, question, is_right);
                                   });
                             });
  if (!asked) {
    limits_.give_back(question.asker.origin);
    return answer(one.asked, Verdict::busy);
  }
  pending_[digest] = std::move(one.asked);
  ++hashing_[question.asker.origin];
  ++hashing_count_;
}

void Logins::finish(const Digest& digest, const Question& question, const Outcome<bool>& is_right) {
  const Origin origin = question.asker.origin;
  const bool has_answer = is_right.has_value();
  const bool right = has_answer && *is_right && question.verifier;
  if (right) known_.add(question.user, digest);
  if (right || !has_answer) limits_.give_back(origin);
  if (--hashing_[origin] == 0) hashing_.erase(origin);
  --hashing_count_;
  AllAsked asked = std::move(pending_.extract(digest).mapped());
  if (has_answer) {
    auto same = take_same(digest);
    std::move(same.begin(), same.end(), std::back_inserter(asked));
  }
  answer(asked, right ? Verdict::right : has_answer ? Verdict::wrong : Verdict::busy);
  go_on();
}

Logins::AllAsked Logins::take_same(const Digest& digest) {
  AllAsked asked;
  for (auto lines = waiting_.begin(); lines != waiting_.end();) {
    auto& by_name = lines->second.by_name;
    for (auto line = by_name.begin(); line != by_name.end();) {
      const std::size_t taken = std::erase_if(line->second, [&](Waiting& one) {
        if (one.digest != digest) return false;
        std::move(one.asked.begin(), one.asked.end(), std::back_inserter(asked));
        return true;
      });
      lines->second.count -= taken;
      waiting_count_ -= taken;
      line = line->second.empty() ? by_name.erase(line) : std::next(line);
    }
    lines = lines->second.count == 0 ? waiting_.erase(lines) : std::next(lines);
  }
  return asked;
}

void Logins::make(Secret password, std::function<void(Outcome<Verifier>)> done) {
  auto asked = worker_.make(std::move(password), [this, done](Outcome<Verifier> made) {
    boost::asio::post(loop_, [done, made = std::move(made)]() mutable { done(std::move(made)); });
  });
  if (!asked) done(asked.problem());
}

}  // namespace leat::broker
