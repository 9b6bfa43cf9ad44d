#include "logins.hpp"

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
  // A check that is under way may return its attempt.
  const bool is_under_way = checking_ && checking_->question.asker.origin == origin;
  const bool may_wait = question.asker.is_first || is_under_way || has_attempt(origin);
  if (!may_wait) return refuse(std::move(one.asked));
  wait(std::move(one));
  go_on();
}

bool Logins::has_attempt(const Origin& origin) const {
  return limits_.next_at(origin) <= std::chrono::steady_clock::now();
}

void Logins::answer(const AllAsked& asked, Verdict verdict) {
  for (const Asked& one : asked) one.done(verdict);
}

bool Logins::answer_at_once(Waiting& one) {
  if (one.question.verifier && known_.contains(one.digest)) {
    answer(std::exchange(one.asked, {}), Verdict::right);
    return true;
  }
  if (!checking_ || checking_->digest != one.digest) return false;
  std::move(one.asked.begin(), one.asked.end(), std::back_inserter(checking_->asked));
  one.asked.clear();
  return true;
}

void Logins::wait(Waiting one) {
  const Origin origin = one.question.asker.origin;
  const std::string name = line_of(one.question);
  const auto [at, is_new] = waiting_.try_emplace(origin);
  if (is_new) turns_.push_back(origin);
  Lines& lines = at->second;
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
  Lines& lines = waiting_.find(origin)->second;
  const auto found = lines.by_name.find(name);
  Line& line = found->second;
  auto at = std::find_if_not(line.begin(), line.end(), is_wanted);
  if (at == line.end())
    at = line.begin() + ::randombytes_uniform(static_cast<std::uint32_t>(line.size()));
  AllAsked asked = std::move(at->asked);
  line.erase(at);
  if (line.empty()) lines.by_name.erase(found);
  --lines.count;
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
  while (!is_hashing_ && begin_next()) {
  }
  if (is_hashing_ || resting_.empty()) return;
  again_.start(resting_.begin()->first - std::chrono::steady_clock::now(), [this] { go_on(); });
}

bool Logins::begin_next() {
  constexpr int kMostInARow = 4;
  if (checks_in_a_row_ >= kMostInARow && begin_make()) return true;
  return begin_check() || begin_make();
}

bool Logins::begin_check() {
  const auto now = std::chrono::steady_clock::now();
  while (!resting_.empty() && resting_.begin()->first <= now) {
    turns_.push_back(resting_.begin()->second);
    resting_.erase(resting_.begin());
  }
  while (!turns_.empty()) {
    const Origin origin = turns_.front();
    turns_.pop_front();
    const auto lines = waiting_.find(origin);
    if (lines->second.count == 0) {
      waiting_.erase(lines);
      continue;
    }
    if (!limits_.take(origin, now)) {
      resting_.emplace(limits_.next_at(origin), origin);
      continue;
    }
    turns_.push_back(origin);
    Waiting one = take(lines->second);
    const bool is_there = is_wanted(one);
    if (is_there && !answer_at_once(one)) {
      begin(std::move(one));
    } else {
      limits_.return_attempt(origin);
      if (!is_there) refuse(std::move(one.asked));
    }
    return true;
  }
  return false;
}

Logins::Waiting Logins::take(Lines& lines) {
  auto line = lines.by_name.upper_bound(lines.last);
  if (line == lines.by_name.end()) line = lines.by_name.begin();
  lines.last = line->first;
  Waiting one = std::move(line->second.front());
  line->second.pop_front();
  if (line->second.empty()) lines.by_name.erase(line);
  --lines.count;
  --waiting_count_;
  return one;
}

void Logins::begin(Waiting one) {
  auto asked = worker_.check(
      std::move(one.password), one.question.verifier.value_or(decoy_verifier()),
      [this](Outcome<bool> is_right) {
        boost::asio::post(loop_, [this, is_right = std::move(is_right)] { finish(is_right); });
      });
  if (!asked) {
    limits_.return_attempt(one.question.asker.origin);
    return answer(one.asked, Verdict::busy);
  }
  is_hashing_ = true;
  checks_in_a_row_ = makers_.empty() ? 0 : checks_in_a_row_ + 1;
  checking_ = std::move(one);
}

void Logins::finish(const Outcome<bool>& is_right) {
  is_hashing_ = false;
  Waiting one = std::move(*checking_);
  checking_.reset();
  const bool has_answer = is_right.has_value();
  const bool right = has_answer && *is_right && one.question.verifier;
  if (right) known_.add(one.question.user, one.digest);
  if (right || !has_answer) limits_.return_attempt(one.question.asker.origin);
  if (has_answer) {
    auto same = take_same(one.digest);
    std::move(same.begin(), same.end(), std::back_inserter(one.asked));
  }
  answer(one.asked, right ? Verdict::right : has_answer ? Verdict::wrong : Verdict::busy);
  go_on();
}

Logins::AllAsked Logins::take_same(const Digest& digest) {
  AllAsked asked;
  for (auto& [origin, lines] : waiting_) {
    for (auto line = lines.by_name.begin(); line != lines.by_name.end();) {
      const std::size_t taken = std::erase_if(line->second, [&](Waiting& one) {
        if (one.digest != digest) return false;
        std::move(one.asked.begin(), one.asked.end(), std::back_inserter(asked));
        return true;
      });
      lines.count -= taken;
      waiting_count_ -= taken;
      line = line->second.empty() ? lines.by_name.erase(line) : std::next(line);
    }
  }
  return asked;
}

void Logins::make(const Maker& maker, Secret password, Made done) {
  auto& waiting = making_[maker];
  if (waiting.size() >= kMostInLine)
    return done(Problem{Errc::busy, "too many new passwords at once: try again"});
  if (waiting.empty()) makers_.push_back(maker);
  waiting.push_back({std::move(password), std::move(done)});
  go_on();
}

bool Logins::begin_make() {
  if (makers_.empty()) return false;
  const Maker maker = std::move(makers_.front());
  makers_.pop_front();
  const auto found = making_.find(maker);
  Making one = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) {
    making_.erase(found);
  } else {
    makers_.push_back(maker);
  }
  checks_in_a_row_ = 0;
  auto asked =
      worker_.make(std::move(one.password), [this, done = one.done](Outcome<Verifier> made) {
        boost::asio::post(loop_, [this, done, made = std::move(made)]() mutable {
          is_hashing_ = false;
          go_on();
          done(std::move(made));
        });
      });
  is_hashing_ = asked.has_value();
  if (!asked) one.done(asked.problem());
  return true;
}

}  // namespace leat::broker
