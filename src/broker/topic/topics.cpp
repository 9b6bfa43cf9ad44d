#include "topics.hpp"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <ctime>

#include "leat/admin.hpp"

namespace leat::broker {

Topics::Topics(boost::asio::io_context& loop, const Config& config, TopicStore& store)
    : loop_{loop},
      config_{config},
      store_{store},
      trim_{loop},
      disk_{loop},
      unsent_{loop, LargeMessages::kMost / 2} {}

std::string Topics::directory() const { return leat::topics_directory(config_.dir); }

std::string Topics::data_directory() const { return leat::data_directory(config_.data_dir); }

void Topics::take_config() {
  for (const auto& [name, topic] : topics_) topic->take_config();
}

Outcome<void> Topics::load() {
  auto stored = store_.topics();
  if (!stored) return stored.problem();
  for (StoredTopic& topic : *stored) insert(std::move(topic));
  return {};
}

const TopicPtr& Topics::insert(StoredTopic stored) {
  const std::string name = stored.name;
  return topics_[name] =
             std::make_shared<BrokerTopic>(loop_, disk_, config_, store_, backlog_, unsent_,
                                           std::move(stored), [this] { trim_heap_soon(); });
}

void Topics::trim_heap_soon() {
  if (!trim_.is_running()) trim_.start(std::chrono::seconds{1}, [] { ::malloc_trim(0); });
}

TopicPtr Topics::find(std::string_view name) const {
  const auto found = topics_.find(name);
  return found == topics_.end() ? nullptr : found->second;
}

Outcome<TopicPtr> Topics::add(const NewTopic& topic, const std::vector<ProtocolValue>& values) {
  if (topics_.size() >= config_.max_topics)
    return Problem{Errc::too_many,
                   fmt::format("there are {} topics already, the limit", topics_.size())};
  auto stored = store_.add(topic, values);
  if (!stored) return stored.problem();
  return insert(std::move(*stored));
}

Outcome<TopicPtr> Topics::find_or_adopt(const std::string& name, const std::string& group) {
  if (auto topic = find(name)) return topic;
  if (problem_of_topic_name(name)) return Problem{Errc::not_found, "there is no such topic"};
  auto log = Topic::open(name, Deadline::immediate(), config_.dir, {}, config_.data_dir);
  if (!log) return Problem{log.error().code, describe(log.error())};
  // Its publishers do not wait for consumers that have never been there.
  return add({.name = name,
              .is_durable = log->info().durable.has_value(),
              .created_at_s = std::time(nullptr),
              .group = group,
              .consumers = Consumers::absent});
}

// The log goes when the store is sure that it can change, and before it has: if the broker dies in between, the topic is there,
// and empty.
Outcome<void> Topics::delete_topic(const TopicPtr& topic) {
  for (TopicObserver* const observer : observers_) observer->on_deleting(*topic);
  auto removed = store_.delete_topic(topic->stored().id, [&] { return topic->delete_log(); });
  if (removed) {
    topics_.erase(topic->name());
    for (TopicObserver* const observer : observers_) observer->on_deleted(*topic);
    return {};
  }
  const TopicPtr kept = topic->is_deleted() ? insert(topic->stored()) : topic;
  for (TopicObserver* const observer : observers_) observer->on_kept(*topic, kept);
  return removed;
}

Outcome<void> Topics::delete_local(const std::string& name) {
  const Problem unknown{Errc::not_found, "topic not found"};
  if (problem_of_topic_name(name)) return unknown;
  auto deleted = delete_log_of(name, config_);
  return !deleted && deleted.problem().code == Errc::not_found ? unknown : deleted;
}

std::vector<std::string> Topics::local_names() const {
  auto names = Topic::list(config_.dir, config_.data_dir);
  if (!names) return {};
  std::erase_if(*names, [this](const std::string& name) { return topics_.contains(name); });
  std::sort(names->begin(), names->end());
  return *names;
}

Outcome<void> Topics::set_password(BrokerTopic& topic, const std::string& user,
                                   const Verifier& verifier) {
  const StoredTopic& stored = topic.stored();
  const auto before = credential_of(stored, user);
  if (!before) return Problem{Errc::not_found, "the user has no right on this topic"};
  if (user != stored.user)
    return grant(topic, {user, before->may_read, before->may_write, verifier});
  auto version = store_.change_password(stored.id, verifier);
  if (!version) return version.problem();
  topic.set_verifier(verifier, *version);
  topic.note_replaced(before->version, user);
  return {};
}

Outcome<void> Topics::grant(BrokerTopic& topic, const Right& right) {
  const auto before = credential_of(topic.stored(), right.user);
  auto granted = store_.grant(topic.stored().id, right);
  if (!granted) return granted.problem();
  topic.set_right(*granted);
  if (!before) return {};
  if (right.verifier) topic.note_replaced(before->version, right.user);
  topic.close_refused(right.user, before->version);
  return {};
}

Outcome<void> Topics::revoke(BrokerTopic& topic, const std::string& user) {
  const auto before = credential_of(topic.stored(), user);
  auto revoked = store_.revoke(topic.stored().id, user);
  if (!revoked && revoked.problem().code == Errc::not_found) return revoked;
  topic.drop_right(user);
  if (before) topic.close_refused(user, before->version);
  return revoked;
}

}  // namespace leat::broker
