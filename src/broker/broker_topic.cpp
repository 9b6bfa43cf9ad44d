#include "broker/broker_topic.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

namespace leat::broker {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;

Problem problem_of(const std::string& what, const std::string& name, Error error) {
  return {error.code, what + " " + name + ": " + describe(error)};
}

}  // namespace

TopicOptions BrokerTopic::options() const {
  TopicOptions options{.segment_bytes = 4 * kMiB,  // So that batches of 1 MiB fit.
                       .directory = places_.directory};
  if (is_durable()) {
    options.durable = Durability::os;
    options.data_directory = places_.data_directory;
  } else {
    options.capacity_bytes = 8 * kMiB;
    options.policy = Policy::grow;
    options.max_capacity_bytes = 256 * kMiB;
  }
  return options;
}

Outcome<void> BrokerTopic::attach() {
  if (log_) return {};
  auto opened =
      Topic::open(name(), Deadline::immediate(), places_.directory, {}, places_.data_directory);
  const bool is_new = !opened && opened.error() == Errc::not_found;
  if (is_new) opened = Topic::create(name(), options());
  if (!opened) return problem_of("cannot open the topic", name(), opened.error());
  log_ = std::move(*opened);
  auto group = is_new ? log_->group(kLightqGroup, lightq_group(From::beginning))
                      : log_->find_group(kLightqGroup);
  if (group) {
    pullers_ = std::move(*group);
    was_pulled_ = !is_new;
  } else if (group.error() != Errc::not_found) {
    log_.reset();
    return problem_of("cannot open the group of the pullers of", name(), group.error());
  }
  return {};
}

Outcome<void> BrokerTopic::expect_puller() {
  was_pulled_ = true;
  if (auto attached = attach(); !attached) return attached;
  if (pullers_) return {};
  auto group = log_->group(kLightqGroup, lightq_group(From::end));
  if (!group) return problem_of("cannot make the group of the pullers of", name(), group.error());
  pullers_ = std::move(*group);
  return {};
}

Outcome<void> BrokerTopic::expect_listener() {
  if (auto attached = attach(); !attached) return attached;
  if (was_pulled_ || is_durable() || !pullers_) return {};
  pullers_.reset();
  auto deleted = log_->delete_group(kLightqGroup);
  if (!deleted && deleted.error() != Errc::not_found)
    return problem_of("cannot delete the group of the pullers of", name(), deleted.error());
  return {};
}

Outcome<Intake*> BrokerTopic::intake() {
  if (intake_) return intake_.get();
  if (auto attached = attach(); !attached) return attached.problem();
  auto opened = Intake::open(loop_, *log_, on_failure());
  if (!opened) return opened.problem();
  intake_ = std::move(*opened);
  return intake_.get();
}

Outcome<Dealer*> BrokerTopic::dealer() {
  if (dealer_) return dealer_.get();
  if (auto expected = expect_puller(); !expected) return expected.problem();
  auto opened = Dealer::open(loop_, *log_, From::end, on_failure());
  if (!opened) return opened.problem();
  dealer_ = std::move(*opened);
  return dealer_.get();
}

Outcome<Feed*> BrokerTopic::feed(const Feed::Encode& encode) {
  if (feed_) return feed_.get();
  if (auto expected = expect_listener(); !expected) return expected.problem();
  auto opened = Feed::open(loop_, *log_, encode, on_failure());
  if (!opened) return opened.problem();
  feed_ = std::move(*opened);
  return feed_.get();
}

TopicCounts BrokerTopic::counts() {
  TopicCounts counts;
  if (!attach()) return counts;
  counts.received = log_->info().partitions[0].end;
  if (!pullers_) return counts;
  const GroupInfo info = pullers_->info();
  counts.waiting = std::min(info.lag + info.in_flight, counts.received);
  return counts;
}

// Called from inside of the objects that are then destroyed, so later.
std::function<void(Error)> BrokerTopic::on_failure() {
  return [this](Error error) {
    if (std::exchange(has_failed_, true)) return;
    const std::string why = describe(error);
    boost::asio::post(loop_, [this, why] { close_log(why); });
  };
}

void BrokerTopic::close_log(const std::string& why) {
  spdlog::error("topic {}: {}; its {} connections are closed", name(), why, connections.size());
  for (Stream* const stream : std::set<Stream*>{connections}) stream->close("the topic has failed");
  feed_.reset();
  dealer_.reset();
  intake_.reset();
  pullers_.reset();
  log_.reset();
  has_failed_ = false;
}

}  // namespace leat::broker
