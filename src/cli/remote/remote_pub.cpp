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
    const auto published = producer_.publish(text, {Deadline::never(), remote_.stop});
    if (!published && published.problem().code == Errc::stopped) return false;
    or_fail(published);
    ++sent_;
    return true;
  }

  void settle() override {
    const auto settled =
        producer_.wait_published(producer_.sent(), {Deadline::never(), remote_.stop});
    if (!settled && settled.problem().code == Errc::stopped)
      throw signals_.failure(fmt::format("{} of {} {}s are known to be in topic '{}'",
                                         number_text(or_fail(producer_.published())),
                                         number_text(sent_), arguments_.unit(), arguments_.topic));
    or_fail(settled);
  }

  std::size_t limit() const noexcept override { return lightq::kMaxMessage; }
  Failure too_large(std::uint64_t size, bool or_more) const override {
    return Failure{kExitUsage,
                   fmt::format("{} {} is too long: {} bytes{}, and no broker takes more than {}{}",
                               arguments_.unit(), sent_ + 1, number_text(size),
                               or_more ? " or more" : "", number_text(limit()), what_was_sent())};
  }

 private:
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
