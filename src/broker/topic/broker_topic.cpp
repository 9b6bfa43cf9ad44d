#include "broker_topic.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <filesystem>
#include <utility>

#include "leat/admin.hpp"
#include "topic_client.hpp"

namespace leat::broker {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;

Problem problem_of(const std::string& what, const std::string& name, Error error) {
  return {error.code, what + " " + name + ": " + describe(error)};
}

// The topic or its group was deleted.
bool is_gone(Errc code) noexcept { return code == Errc::deleted || code == Errc::closed; }

}  // namespace

template <class Step>
auto BrokerTopic::on_living_log(const Step& step) -> decltype(step()) {
  auto done = step();
  if (done || !is_gone(done.problem().code) || in_use()) return done;
  group_.reset();
  log_.reset();
  return step();
}

TopicOptions BrokerTopic::options() const {
  TopicOptions options{.segment_bytes = 4 * kMiB,  // So that batches of 1 MiB fit.
                       .directory = config_.dir};
  if (stored_.is_durable) {
    options.durable = Durability::os;
    options.data_directory = config_.data_dir;
  } else {
    options.capacity_bytes = 8 * kMiB;
    options.policy = Policy::grow;
    options.max_capacity_bytes = 256 * kMiB;
  }
  return options;
}

Outcome<void> BrokerTopic::attach() {
  if (is_deleted_) return Problem{Errc::not_found, "the topic was deleted"};
  if (clients_.empty() && !idle_.is_running()) close_when_idle();
  if (log_) return {};
  auto opened = Topic::open(name(), Deadline::immediate(), config_.dir, {}, config_.data_dir);
  const bool is_new = !opened && opened.error() == Errc::not_found;
  if (is_new) opened = Topic::create(name(), options());
  if (!opened) return problem_of_open(opened.error());
  log_ = std::move(*opened);
  const TopicInfo info = log_->info();
  is_durable_ = info.durable.has_value();
  has_one_partition_ = info.partitions.size() == 1;
  auto group = open_group(is_new);
  if (!group) log_.reset();
  return group;
}

// After somebody has removed the files of a durable topic in use, its memory still has the name.
Problem BrokerTopic::problem_of_open(Error error) const {
  std::error_code ignored;
  const std::string files = data_directory(config_.data_dir) + '/' + name();
  if (error.code == Errc::wrong_format && stored_.is_durable &&
      !std::filesystem::exists(files, ignored))
    return {Errc::wrong_format,
            fmt::format("cannot open the topic {}: its files are missing: bring {} back, or delete "
                        "the topic",
                        name(), files)};
  return problem_of("cannot open the topic", name(), error);
}

Outcome<void> BrokerTopic::open_group(bool is_new_log) {
  if (stored_.group.empty()) return {};
  auto group = log_->find_group(stored_.group);
  if (!group && group.error() == Errc::not_with_overwrite)
    return {};  // It overwrites: there are no groups.
  if (!group && group.error() == Errc::not_found) {
    if (stored_.consumers == Consumers::absent) return {};
    // A log that is not new lacks its group if the broker died before it made one, or if somebody deleted it.
    const bool is_awaited = is_new_log || stored_.consumers == Consumers::awaited;
    group = log_->group(stored_.group, group_options(is_awaited ? From::beginning : From::end));
  }
  if (!group) return problem_of("cannot open the consumer group of", name(), group.error());
  group_ = std::move(*group);
  return {};
}

Outcome<void> BrokerTopic::remember(Consumers consumers, const std::string& group) {
  if (stored_.consumers == consumers && stored_.group == group) return {};
  if (auto set = store_.set_consumers(stored_.id, consumers, group); !set) return set;
  stored_.consumers = consumers;
  stored_.group = group;
  return {};
}

Outcome<void> BrokerTopic::expect_group_consumer(const std::string& group) {
  return on_living_log([&] { return find_or_make_group(group); });
}

Outcome<void> BrokerTopic::expect_subscriber() {
  return on_living_log([this] { return delete_unused_group(); });
}

Outcome<void> BrokerTopic::find_or_make_group(const std::string& group) {
  if (auto attached = attach(); !attached) return attached;
  const std::string name = stored_.group.empty() ? group : stored_.group;
  if (name.empty()) return Problem{Errc::invalid_argument, "the topic has no consumer group"};
  const bool is_awaited = stored_.consumers == Consumers::awaited;
  if (auto remembered = remember(Consumers::known, name); !remembered) return remembered;
  if (group_) return {};
  auto made = log_->group(name, group_options(is_awaited ? From::beginning : From::end));
  if (!made) return problem_of("cannot make the consumer group of", stored_.name, made.error());
  group_ = std::move(*made);
  return {};
}

Outcome<void> BrokerTopic::delete_unused_group() {
  if (auto attached = attach(); !attached) return attached;
  // Not a group of which somebody has had records.
  if (stored_.consumers == Consumers::known || is_durable_ || !group_ || group_->position() != 0)
    return {};
  // Stored before the group is deleted: if the broker dies in between, the next subscriber deletes it.
  if (auto remembered = remember(Consumers::absent, stored_.group); !remembered) return remembered;
  auto deleted = log_->delete_group(stored_.group);
  if (!deleted && deleted.error() == Errc::busy)  // A local process is a member of it.
    return remember(Consumers::known, stored_.group);
  if (!deleted && deleted.error() != Errc::not_found)
    return problem_of("cannot delete the consumer group of", name(), deleted.error());
  group_.reset();
  return {};
}

template <class Part, class Open>
Outcome<Part*> BrokerTopic::open(std::unique_ptr<Part>& part, const Open& open) {
  if (part) return part.get();
  auto opened = on_living_log(open);
  if (!opened) {
    const Errc code = opened.problem().code;
    if (is_gone(code) && in_use())
      on_failure()(Error{code});  // Clients come again, and find it made anew.
    return opened.problem();
  }
  part = std::move(*opened);
  return part.get();
}

Outcome<PublishBuffer*> BrokerTopic::publish_buffer() {
  return open(publish_buffer_, [this]() -> Outcome<std::unique_ptr<PublishBuffer>> {
    if (auto attached = attach(); !attached) return attached.problem();
    return PublishBuffer::open(loop_, *log_, on_failure(),
                               [this](std::uint64_t begin, std::uint64_t end, std::size_t bytes) {
                                 on_published(begin, end, bytes);
                               });
  });
}

void BrokerTopic::on_published(std::uint64_t begin, std::uint64_t end, std::size_t bytes) {
  // Records of a durable topic may wait on disk; and offsets of one partition say nothing about another one.
  if (!is_durable_ && has_one_partition_) throttle_.add(end, bytes);
  const bool is_only_ours = std::exchange(published_, end) == begin && has_one_partition_;
  const auto poll = [&](auto& part) { is_only_ours ? part.poll_until(end) : part.poll(); };
  if (dispatcher_) poll(*dispatcher_);
  for (const auto& [encoding, broadcaster] : broadcasters_) poll(*broadcaster);
}

std::optional<std::uint64_t> BrokerTopic::reached() const {
  if (!dispatcher_ || !dispatcher_->has_consumers()) return std::nullopt;
  return dispatcher_->reached();
}

// Whether a part of it waits for the disk.
bool BrokerTopic::is_reading() const {
  return (dispatcher_ && dispatcher_->is_reading()) ||
         std::any_of(broadcasters_.begin(), broadcasters_.end(),
                     [](const auto& one) { return one.second->is_reading(); });
}

Outcome<GroupDispatcher*> BrokerTopic::dispatcher() {
  return open(dispatcher_, [this]() -> Outcome<std::unique_ptr<GroupDispatcher>> {
    if (auto found = find_or_make_group(stored_.group); !found) return found.problem();
    return GroupDispatcher::open(loop_, disk_, *log_, *group_, unsent_, on_failure(),
                                 [this] { throttle_.on_progress(); });
  });
}

Outcome<Broadcaster*> BrokerTopic::broadcaster(const Encoding& encoding) {
  std::unique_ptr<Broadcaster> opened;
  const auto found = broadcasters_.find(&encoding);
  if (found != broadcasters_.end()) return found->second.get();
  const auto encode = [name = name(), call = encoding.for_subscriber](
                          std::string& out, const Record& record) { call(out, name, record); };
  auto broadcaster = open(opened, [&]() -> Outcome<std::unique_ptr<Broadcaster>> {
    if (auto deleted = delete_unused_group(); !deleted) return deleted.problem();
    return Broadcaster::open(loop_, disk_, *log_, backlog_, encode, on_failure());
  });
  if (broadcaster) broadcasters_[&encoding] = std::move(opened);
  return broadcaster;
}

TopicCounts BrokerTopic::counts() {
  TopicCounts counts;
  if (!attach()) return counts;
  for (std::uint32_t i = 0; i < log_->partitions(); ++i) counts.received += log_->end_offset(i);
  if (!group_) return counts;
  const GroupInfo info = group_->info();
  counts.waiting = std::min(info.lag + info.in_flight, counts.received);
  return counts;
}

// Called from inside of the objects that are then destroyed, so later.
std::function<void(Error)> BrokerTopic::on_failure() {
  return [this](Error error) {
    if (std::exchange(has_failed_, true)) return;
    const std::string why = describe(error);
    boost::asio::post(loop_, [weak = weak_from_this(), why] {
      if (const auto self = weak.lock()) self->fail(why);
    });
  };
}

void BrokerTopic::fail(const std::string& why) {
  if (!has_failed_) return;  // It was closed meanwhile.
  spdlog::error("topic {}: {}; its {} connections are closed", name(), why, clients_.size());
  close_clients("the topic has failed", [](const TopicClient&) { return true; });
  close_log();
}

void BrokerTopic::close_log() {
  idle_.stop();
  broadcasters_.clear();
  dispatcher_.reset();
  publish_buffer_.reset();
  group_.reset();
  log_.reset();
  throttle_.begin_anew();
  published_ = 0;
  has_failed_ = false;
}

// --- Clients ------------------------------------------------------------------------------------------

void BrokerTopic::add(TopicClient& client) {
  clients_.insert(&client);
  idle_.stop();
}

void BrokerTopic::remove(TopicClient& client) {
  clients_.erase(&client);
  if (clients_.empty()) close_when_idle();
}

void BrokerTopic::close_when_idle() {
  idle_.start(config_.topic_idle_time, [this] {
    if (unpublished() != 0 || is_reading()) return close_when_idle();
    if (log_ && !is_durable_) (void)log_->shrink();  // After a burst.
    close_log();
    on_idle_();
  });
}

void BrokerTopic::close_clients(const std::string& why,
                                const std::function<bool(const TopicClient&)>& applies) {
  for (TopicClient* const client : std::set<TopicClient*>{clients_}) {
    // Those before it may have closed it.
    if (clients_.contains(client) && applies(*client)) client->stream().close(why);
  }
}

void BrokerTopic::note_replaced(std::int64_t version, const std::string& user) {
  replaced_[version] = user;
  std::erase_if(replaced_, [&](const auto& one) {
    return std::none_of(clients_.begin(), clients_.end(), [&](const TopicClient* client) {
      return client->principal().version == one.first;
    });
  });
}

void BrokerTopic::close_refused(const std::string& user, std::int64_t version) {
  const auto now = credential_of(stored_, user);
  close_clients("the right was taken away", [&](const TopicClient& one) {
    const std::int64_t own = one.principal().version;
    const auto replaced = replaced_.find(own);
    const bool is_the_users =
        own == version || (replaced != replaced_.end() && replaced->second == user);
    return is_the_users && !(now && now->may(one.access()));
  });
}

void BrokerTopic::take_config() {
  for (const auto& [encoding, broadcaster] : broadcasters_)
    broadcaster->poll_later();  // It may be held up no more.
}

Outcome<void> BrokerTopic::seek(const std::string& group, const From& to) {
  if (auto expected = expect_group_consumer(group); !expected) return expected;
  auto moved = group_->seek(to);
  if (!moved && moved.error() == Errc::invalid_argument)
    return Problem{Errc::invalid_argument, has_one_partition_
                                               ? "there is no such offset in " + name() + " yet"
                                               : name() +
                                                     " has several partitions: an offset does "
                                                     "not say in which"};
  if (!moved) return problem_of("cannot move the consumer group of", name(), moved.error());
  return {};
}

void BrokerTopic::close_if_deleted() {
  if (!log_ || !log_->is_deleted()) return;
  has_failed_ = true;
  fail("it was deleted");
}

Outcome<void> delete_log_of(const std::string& name, const Config& config) {
  auto deleted = Topic::delete_topic(
      name, {.force = true, .directory = config.dir, .data_directory = config.data_dir});
  if (!deleted) return problem_of("cannot delete the topic", name, deleted.error());
  return {};
}

Outcome<void> BrokerTopic::delete_log() {
  is_deleted_ = true;  // So that nobody opens it meanwhile.
  close_clients("the topic was deleted", [](const TopicClient&) { return true; });
  close_log();
  auto deleted = delete_log_of(name(), config_);
  // It may never have been used.
  if (deleted || deleted.problem().code == Errc::not_found) return {};
  is_deleted_ = false;
  return deleted;
}

}  // namespace leat::broker
