#include "topics.hpp"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <ctime>

#include "leat/admin.hpp"

namespace leat::broker {
namespace {

Problem problem_of_busy(const std::string& name) {
  return {Errc::busy,
          "the topic " + name + " is being deleted, or becomes one of the broker: try again"};
}

}  // namespace

Topics::Topics(boost::asio::io_context& loop, const Config& config, TopicStore& store)
    : config_{config},
      store_{store},
      trim_{loop},
      unsent_{loop, LargeMessages::kMost / 2},
      reads_{loop},
      disk_{loop},
      memory_{loop},
      share_{loop,     reads_,  disk_,
             memory_,  config,  store,
             backlog_, unsent_, [this] { trim_heap_soon(); }} {}

// Connections and commands that the loop has not forgotten yet may share the ownership of a topic.
Topics::~Topics() {
  for (const auto& [name, topic] : topics_) topic->log().shut_down();
}

std::string Topics::directory() const { return leat::topics_directory(config_.dir); }

std::string Topics::data_directory() const { return leat::data_directory(config_.data_dir); }

void Topics::take_config() {
  for (const auto& [name, topic] : topics_) topic->log().take_config();
}

Outcome<void> Topics::load() {
  auto stored = store_.topics();
  if (!stored) return stored.problem();
  for (StoredTopic& topic : *stored) insert(std::move(topic));
  return {};
}

const TopicPtr& Topics::insert(StoredTopic stored) {
  const std::string name = stored.name;
  return topics_[name] = std::make_shared<BrokerTopic>(share_, std::move(stored));
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
  if (busy_.contains(topic.name)) return problem_of_busy(topic.name);
  auto stored = store_.add(topic, values);
  if (!stored) return stored.problem();
  return insert(std::move(*stored));
}

void Topics::find_or_adopt(const std::string& name, const std::string& group,
                           std::function<void(Outcome<TopicPtr>)> done) {
  if (auto topic = find(name)) return done(topic);
  if (problem_of_topic_name(name)) return done(Problem{Errc::not_found, "there is no such topic"});
  if (!busy_.insert(name).second) return done(problem_of_busy(name));
  const auto is_durable = [name, dir = config_.dir,
                           data_dir = config_.data_dir]() -> Outcome<bool> {
    auto log = Topic::open(name, Deadline::immediate(), dir, {}, data_dir);
    if (!log) return Problem{log.error().code, describe(log.error())};
    return log->info().durable.has_value();
  };
  disk_.compute(is_durable, [this, name, group, done](const Outcome<bool>& durable) {
    busy_.erase(name);
    if (!durable) return done(durable.problem());
    // Its publishers do not wait for consumers that have never been there.
    done(add({.name = name,
              .is_durable = *durable,
              .created_at_s = std::time(nullptr),
              .group = group,
              .consumers = Consumers::absent}));
  });
}

// The log goes when the store is sure that it can change, and before it has: if the broker dies in between, the topic is there,
// and empty.
void Topics::delete_topic(const TopicPtr& topic, TopicLog::Done done) {
  if (topic->is_deleted()) return done(Problem{Errc::busy, "the topic is being deleted"});
  for (TopicObserver* const observer : observers_) observer->on_deleting(*topic);
  const auto keep = [this, topic](const TopicPtr& now) {
    for (TopicObserver* const observer : observers_) observer->on_kept(*topic, now);
  };
  if (auto possible = store_.can_delete_topic(topic->stored().id); !possible) {
    keep(topic);
    return done(std::move(possible));
  }
  topic->log().delete_files([this, topic, keep, done](Outcome<void> deleted) {
    if (!deleted) {
      keep(topic);
      return done(std::move(deleted));
    }
    auto removed = store_.delete_topic(topic->stored().id);
    if (!removed) {
      keep(insert(topic->stored()));
      return done(std::move(removed));
    }
    topics_.erase(topic->name());
    for (TopicObserver* const observer : observers_) observer->on_deleted(*topic);
    done({});
  });
}

void Topics::delete_local(const std::string& name, TopicLog::Done done) {
  const Problem unknown{Errc::not_found, "topic not found"};
  if (problem_of_topic_name(name)) return done(unknown);
  if (!busy_.insert(name).second) return done(problem_of_busy(name));
  const auto remove = [name, dir = config_.dir, data_dir = config_.data_dir] {
    return delete_files_of(name, dir, data_dir);
  };
  disk_.compute(remove, [this, name, done, unknown](Outcome<void> deleted) {
    busy_.erase(name);
    const bool is_unknown = !deleted && deleted.problem().code == Errc::not_found;
    done(is_unknown ? Outcome<void>{unknown} : std::move(deleted));
  });
}

void Topics::local_names(std::function<void(std::vector<std::string>)> done) {
  const auto list = [dir = config_.dir, data_dir = config_.data_dir] {
    auto names = Topic::list(dir, data_dir);
    return names ? std::move(*names) : std::vector<std::string>{};
  };
  disk_.compute(list, [this, done](std::vector<std::string> names) {
    std::erase_if(names, [this](const std::string& name) { return topics_.contains(name); });
    std::sort(names.begin(), names.end());
    done(std::move(names));
  });
}

void Topics::has_local(const std::string& name, std::function<void(bool)> done) {
  disk_.compute(
      [name, dir = config_.dir, data_dir = config_.data_dir] {
        return has_memory(name, dir) || has_files(name, data_dir);
      },
      std::move(done));
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
