// One strike: chooses the victims, stops them, and checks that the others continue.
#include <algorithm>
#include <string_view>

#include "supervisor.hpp"

namespace leat::testing {
namespace {

constexpr std::int64_t kPromised = 100'000'000;  // ns
constexpr std::size_t kHistory = 12;

}  // namespace

void Supervisor::strike() {
  const std::vector<Process*> victims = choose_victims();
  if (victims.size() < 2) return;
  ++totals_.strikes;
  const bool silent = below(random_, 40) == 0;  // Nobody publishes for a while.
  if (silent) world_.shared->silent_until_ns = detail::now_ns() + 1'300'000'000;
  if (below(random_, 3) != 0) stop_at_steps(victims);
  stop_as_group(victims);

  std::string text;
  const auto ending = static_cast<Ending>(std::min<std::uint64_t>(below(random_, 4), 2));
  if (ending != Ending::kills || below(random_, 2) == 0) {
    const std::uint64_t at_most_us = below(random_, 40) == 0 ? 1'500'000 : 10'000;
    ::usleep(static_cast<::useconds_t>(below(random_, at_most_us)));
  }
  for (Process* victim : victims) {
    const bool kill =
        ending == Ending::kills || (ending == Ending::kills_some && below(random_, 2) == 0);
    const char* where = victim->life->blow.where();
    text += (text.empty() ? "" : ", ") + victim->name() + (kill ? " killed" : " stopped") +
            (where != nullptr ? std::string{" at "} + where : "");
    totals_.at_steps += where != nullptr ? 1 : 0;
    finish(*victim, kill);
  }
  // Continues a child of a victim that had not left the process group yet and was stopped with it.
  ::kill(-victims.front()->child->pid(), SIGCONT);
  history_.push_back(text + (silent ? "; silence" : ""));
  if (history_.size() > kHistory) history_.pop_front();
  const std::int64_t silence_ends = world_.shared->silent_until_ns;
  expect_all_go_on(std::max(detail::now_ns(), silence_ends));
}

std::vector<Supervisor::Process*> Supervisor::choose_victims() {
  std::vector<Process*> victims;
  for (Process& process : processes_) {
    if (is_spared(process.kind) || process.child->poll() != Child::State::running) continue;
    process.life->blow.forget();
    victims.push_back(&process);
  }
  std::shuffle(victims.begin(), victims.end(), random_);
  if (const std::size_t wanted = 2 + below(random_, 4); victims.size() > wanted)
    victims.resize(wanted);
  return victims;
}

// Stops each victim at a labelled step. Half of the time all labels are from one family, so that
// the victims meet there. A victim that does not reach its label soon is stopped wherever it is.
void Supervisor::stop_at_steps(const std::vector<Process*>& victims) {
  const auto labels_of = [&](const Process* victim) -> const Labels& {
    return world_.shared->labels[static_cast<std::size_t>(victim->kind)];
  };
  const bool together = below(random_, 2) == 0;
  const std::string_view theme =
      together ? Labels::family(labels_of(victims.front()).pick(random_)) : std::string_view{};
  for (Process* victim : victims) {
    const auto passes = static_cast<std::uint32_t>(below(random_, 4) != 0 ? 1 : below(random_, 8));
    victim->life->blow.arm(labels_of(victim).pick(random_, theme), passes);
  }
  const Deadline enough{std::chrono::milliseconds{1 + below(random_, 10)}};
  const auto stands = [](Process* victim) {
    return victim->child->poll() != Child::State::running;
  };
  while (!std::all_of(victims.begin(), victims.end(), stands) && !enough.passed()) ::usleep(50);
  for (Process* victim : victims) victim->life->blow.disarm();
}

// Stops all victims at the same moment: one process group, one signal.
void Supervisor::stop_as_group(const std::vector<Process*>& victims) {
  const ::pid_t leader = victims.front()->child->pid();
  for (Process* victim : victims) ::setpgid(victim->child->pid(), leader);
  ::kill(-leader, SIGSTOP);
}

void Supervisor::finish(Process& victim, bool kill) {
  Child& child = *victim.child;
  if (kill) {
    child.signal(SIGKILL);
    victim.is_killed = true;
    ++totals_.kills;
    return;
  }
  ::setpgid(child.pid(), child.pid());
  child.go_on();
  ++totals_.stops;
}

// Every spared process must have made progress since then.
void Supervisor::expect_all_go_on(std::int64_t since_ns) {
  const Deadline late{std::chrono::nanoseconds{since_ns - detail::now_ns()} + kPatience};
  std::int64_t longest_ns = 0;
  for (Process& process : processes_) {
    if (!is_spared(process.kind)) continue;
    while (process.life->progress_ns <= since_ns && !late.passed() && is_well()) {
      for (Process& other : processes_) let_go_on(other);
      ::usleep(100);
    }
    if (late.passed()) {
      ADD_FAILURE() << process.name() << " makes no progress after: " << history();
      return;
    }
    longest_ns = std::max<std::int64_t>(longest_ns, process.life->progress_ns - since_ns);
  }
  totals_.longest_ns = std::max(totals_.longest_ns, longest_ns);
  if (longest_ns > kPromised) ++totals_.late;
}

}  // namespace leat::testing
