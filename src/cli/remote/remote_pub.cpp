// `leat pub --broker …`: values only, because the protocol has no keys and headers.
#include <fmt/format.h>

#include "remote.hpp"

namespace leat::cli {
namespace {

class RemoteSender final : public Sender {
 public:
  RemoteSender(const BrokerOptions& options, const PubArguments& arguments,
               const StopOnSignal& signals)
      : Sender{arguments},
        signals_{signals},
        remote_{options, signals.token()},
        producer_{join(remote_, arguments.topic)} {}

  bool send(std::string_view text) override {
    for (const Deadline end = give_up_at();;) {
      const auto published = producer_.publish(text, next_try(end));
      if (!published && published.problem().code == Errc::stopped) return false;
      if (!goes_on(published, end)) break;
    }
    ++sent_;
    return true;
  }

  void settle() override {
    std::uint64_t before = 0;
    for (Deadline end = give_up_at();;) {
      const auto settled = producer_.wait_published(producer_.sent(), next_try(end));
      if (!settled && settled.problem().code == Errc::stopped)
        throw signals_.failure(fmt::format("{} of {} {}s are known to be in topic '{}'",
                                           number_text(or_fail(producer_.published())),
                                           number_text(sent_), arguments_.unit(),
                                           arguments_.topic));
      if (const std::uint64_t now = or_fail(producer_.published()); now != before) {
        before = now;  // It moves on.
        if (!settled) end = give_up_at();
      }
      if (!goes_on(settled, end)) break;
    }
  }

  std::size_t limit() const noexcept override { return lightq::kMaxMessage; }
  Failure too_large(std::uint64_t size, bool or_more) const override {
    return Failure{kExitUsage,
                   fmt::format("{} {} is too long: {} bytes{}, and no broker takes more than {}{}",
                               arguments_.unit(), sent_ + 1, number_text(size),
                               or_more ? " or more" : "", number_text(limit()), what_was_sent())};
  }

 private:
  lightq::Patience next_try(const Deadline& end) const {
    return {end.at_most_ns(kPatience.count()), remote_.stop};
  }
  // Whether to try again. Fails if the broker refused, or --timeout has passed.
  bool goes_on(const Outcome<void>& done, const Deadline& end) {
    if (done) return false;
    if (done.problem().code != Errc::timeout) or_fail(done);
    const std::string sentence = fmt::format(
        "the broker takes nothing now, probably because topic '{0}' is full there and its "
        "consumers are slow: `leat topic info {0} --broker …` shows it",
        arguments_.topic);
    if (end.passed()) throw gave_up(sentence);
    say(sentence);
    return true;
  }

  static lightq::Producer join(Remote& remote, const std::string& topic) {
    const auto joined =
        or_fail(remote.admin.join(topic, remote.user, lightq::Role::producer, remote.to_answer()));
    return or_fail(lightq::Producer::open(joined, {}, remote.to_connect()));
  }

  const StopOnSignal& signals_;
  Remote remote_;
  lightq::Producer producer_;
};

}  // namespace

std::unique_ptr<Sender> remote_sender(const BrokerOptions& options, const PubArguments& arguments,
                                      const StopOnSignal& signals) {
  return std::make_unique<RemoteSender>(options, arguments, signals);
}

}  // namespace leat::cli
