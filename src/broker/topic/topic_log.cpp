#include "topic_log.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <filesystem>
#include <iterator>
#include <utility>
#include <vector>

#include "leat/admin.hpp"

namespace leat::broker {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;

Problem problem_of(const std::string& what, const std::string& name, Error error) {
  return {error.code, what + " " + name + ": " + describe(error)};
}

// The topic or its group was deleted.
bool is_gone(Errc code) noexcept { return code == Errc::deleted || code == Errc::closed; }

TopicOptions options_of(const StoredTopic& stored, const Config& config) {
  TopicOptions options{.segment_bytes = 4 * kMiB,  // So that batches of 1 MiB fit.
                       .directory = config.dir};
  if (stored.is_durable) {
    options.durable = Durability::os;
    options.data_directory = config.data_dir;
  } else {
    options.capacity_bytes = 8 * kMiB;
    options.policy = Policy::grow;
    options.max_capacity_bytes = 256 * kMiB;
  }
  return options;
}

GroupOptions options_of_group(bool from_beginning) {
  return group_options(from_beginning ? From::beginning : From::end);
}

// Why a topic cannot be opened. After somebody has removed the files of a durable topic in use, its memory still has the name.
Problem problem_of_open(const StoredTopic& stored, const std::string& data_directory_name,
                        Error error) {
  std::error_code ignored;
  const std::string files = data_directory(data_directory_name) + '/' + stored.name;
  if (error.code == Errc::wrong_format && stored.is_durable &&
      !std::filesystem::exists(files, ignored))
    return {Errc::wrong_format,
            fmt::format("cannot open the topic {}: its files are missing: bring {} back, or delete "
                        "the topic",
                        stored.name, files)};
  return problem_of("cannot open the topic", stored.name, error);
}

TopicCounts counts_of(const Topic& log, const Group* group) {
  TopicCounts counts;
  for (std::uint32_t i = 0; i < log.partitions(); ++i) counts.received += log.end_offset(i);
  if (group == nullptr) return counts;
  const GroupInfo info = group->info();
  counts.waiting = std::min(info.lag + info.in_flight, counts.received);
  return counts;
}

}  // namespace

Outcome<void> delete_files_of(const std::string& name, const std::string& directory,
                              const std::string& data_directory) {
  auto deleted = Topic::delete_topic(
      name, {.force = true, .directory = directory, .data_directory = data_directory});
  if (!deleted) return problem_of("cannot delete the topic", name, deleted.error());
  return {};
}

// --- Turns --------------------------------------------------------------------------------------------

void TopicLog::in_turn(const TopicUser* user, std::function<void(const Turn&)> begin) {
  calls_.push_back({user, std::move(begin)});
  if (!std::exchange(is_turn_taken_, true)) next_turn();
}

void TopicLog::next_turn() {
  if (is_shut_down_) return;
  boost::asio::post(share_.loop, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self || self->is_shut_down_) return;
    self->is_turn_taken_ = !self->calls_.empty();
    if (!self->is_turn_taken_) return;
    const Call call = std::move(self->calls_.front());
    self->calls_.pop_front();
    call.begin(Turn{nullptr, [weak](void*) {
                      if (const auto still = weak.lock()) still->next_turn();
                    }});
  });
}

void TopicLog::drop_calls_of(const TopicUser& user) {
  std::deque<Call> dropped;  // Destroyed last: who knows what a call has.
  const auto end = std::stable_partition(calls_.begin(), calls_.end(),
                                         [&](const Call& call) { return call.user != &user; });
  std::move(end, calls_.end(), std::back_inserter(dropped));
  calls_.erase(end, calls_.end());
}

template <class Work, class Then>
void TopicLog::on_worker(Work work, Then then) {
  worker().compute(std::move(work), [then = std::move(then), weak = weak_from_this()](auto result) {
    const auto self = weak.lock();
    if (self && !self->is_shut_down_) then(std::move(result));
  });
}

template <class Work, class Then>
void TopicLog::on_log(Work work, const Done& failed, Then then) {
  on_worker([log = log_, work = std::move(work)] { return work(*log); },
            [this, failed, then = std::move(then), number = opened_](auto result) {
              if (number == opened_) return then(std::move(result));
              // The worker destroys what nobody wants: the last handle of a log may wait for the disk.
              const auto unwanted = std::make_shared<decltype(result)>(std::move(result));
              worker().add([unwanted] {}, [] {});
              failed(Problem{Errc::closed, "the topic was closed meanwhile"});
            });
}

// --- Users --------------------------------------------------------------------------------------------

void TopicLog::open(TopicUser& user, const TopicUse& use, Done done) {
  LEAT_ASSERT(use.kind != TopicUse::Kind::subscribe || use.encoding != nullptr);
  const auto [at, is_new] = users_.try_emplace(&user);
  if (is_new) at->second.number = ++last_user_;
  idle_.stop();
  in_turn(&user, [this, one = &user, number = at->second.number, use,
                  done = std::move(done)](const Turn& turn) {
    perform(use, true, [this, one, number, use, turn, done](Outcome<void> opened) {
      if (!is_user(one, number)) return;
      if (use.kind == TopicUse::Kind::consume) users_[one].groups.insert(group_of(use));
      done(std::move(opened));
    });
  });
}

bool TopicLog::is_user(TopicUser* user, std::uint64_t number) const {
  const auto found = users_.find(user);
  return found != users_.end() && found->second.number == number;
}

void TopicLog::close(TopicUser& user) {
  if (users_.erase(&user) == 0) return;
  drop_calls_of(user);
  if (users_.empty()) close_when_idle();
}

void TopicLog::prepare(const TopicUse& use, Done done) {
  in_turn(nullptr, [this, use, done = std::move(done)](const Turn& turn) {
    perform(use, false, [turn, done](Outcome<void> prepared) { done(std::move(prepared)); });
  });
}

PublishBuffer& TopicLog::publish_buffer(std::optional<std::uint32_t> partition) {
  return *publish_buffers_.at(partition);
}

GroupDispatcher& TopicLog::dispatcher(const std::string& group) { return *dispatchers_.at(group); }

Broadcaster& TopicLog::broadcaster(const Encoding& encoding) {
  return *broadcasters_.at(&encoding);
}

// --- Opening ------------------------------------------------------------------------------------------

void TopicLog::perform(const TopicUse& use, bool opens_part, const Done& done, Attempt attempt) {
  const Done finish = [=, this](Outcome<void> outcome) {
    const bool may_recover =
        !outcome && attempt == Attempt::first && is_gone(outcome.problem().code);
    if (may_recover) return recover(use, opens_part, done, outcome.problem());
    done(std::move(outcome));
  };
  attach([=, this](Outcome<void> attached) {
    if (!attached) return done(std::move(attached));
    settle_group(use, [=, this](Outcome<void> settled) {
      if (!settled || !opens_part) return finish(std::move(settled));
      open_part(use, finish);
    });
  });
}

// Something of what is open is gone. What others do not use is opened again.
void TopicLog::recover(const TopicUse& use, bool opens_part, const Done& done,
                       const Problem& problem) {
  if (log_ && !log_->is_deleted() && use.kind == TopicUse::Kind::consume) {
    fail_group(group_of(use), "its consumer group was deleted");
  } else if (in_use()) {
    on_failure()(Error{problem.code});  // Clients come again, and find it made anew.
    return done(problem);
  } else {
    close_files();
  }
  perform(use, opens_part, done, Attempt::last);
}

struct TopicLog::Files {
  std::shared_ptr<Topic> log;
  std::shared_ptr<Group> own_group;  // Null: there is none.
  bool is_durable;
  bool has_one_partition;
};

void TopicLog::attach(const Done& then) {
  if (is_deleted_) return then(Problem{Errc::not_found, "the topic was deleted"});
  if (log_ && (in_use() || !log_->is_deleted())) {
    if (users_.empty()) close_when_idle();
    return then({});
  }
  close_files();
  const auto open_or_make = [stored = *stored_, options = options_of(*stored_, share_.config),
                             directory = share_.config.dir,
                             data_directory = share_.config.data_dir]() -> Outcome<Files> {
    auto log = Topic::open(stored.name, Deadline::immediate(), directory, {}, data_directory);
    const bool is_new = !log && log.error() == Errc::not_found;
    if (is_new) log = Topic::create(stored.name, options);
    if (!log) return problem_of_open(stored, data_directory, log.error());
    const TopicInfo info = log->info();
    Files files{.log = std::make_shared<Topic>(std::move(*log)),
                .own_group = {},
                .is_durable = info.durable.has_value(),
                .has_one_partition = info.partitions.size() == 1};
    if (stored.group.empty()) return files;
    auto group = files.log->find_group(stored.group);
    if (!group && group.error() == Errc::not_with_overwrite)
      return files;  // It overwrites: there are no groups.
    if (!group && group.error() == Errc::not_found) {
      if (stored.consumers == Consumers::absent) return files;
      // A log that is not new lacks its group if the broker died before it made one, or if somebody deleted it.
      const bool is_awaited = is_new || stored.consumers == Consumers::awaited;
      group = files.log->group(stored.group, options_of_group(is_awaited));
    }
    if (!group) return problem_of("cannot open the consumer group of", stored.name, group.error());
    files.own_group = std::make_shared<Group>(std::move(*group));
    return files;
  };
  on_worker(open_or_make, [this, then](Outcome<Files> files) {
    if (!files) return then(files.problem());
    log_ = std::move(files->log);
    ++opened_;
    if (files->own_group) groups_[stored_->group] = std::move(files->own_group);
    is_durable_ = files->is_durable;
    has_one_partition_ = files->has_one_partition;
    if (users_.empty()) close_when_idle();
    then({});
  });
}

void TopicLog::settle_group(const TopicUse& use, const Done& then) {
  if (use.kind == TopicUse::Kind::subscribe) return delete_unused_group(then);
  if (use.kind != TopicUse::Kind::consume) return then({});
  if (!use.is_own_group) return make_group(use.group, false, then);
  const std::string name = stored_->group.empty() ? use.group : stored_->group;
  if (name.empty()) return then(Problem{Errc::invalid_argument, "the topic has no consumer group"});
  const bool is_awaited = stored_->consumers == Consumers::awaited;
  if (auto remembered = remember(Consumers::known, name); !remembered)
    return then(std::move(remembered));
  make_group(name, is_awaited, then);
}

void TopicLog::make_group(const std::string& name, bool from_beginning, const Done& then) {
  if (groups_.contains(name)) return then({});
  const auto make = [name, options = options_of_group(from_beginning)](const Topic& log) {
    return log.group(name, options);
  };
  on_log(make, then, [this, then, name](Result<Group> group) {
    if (!group)
      return then(problem_of("cannot make the consumer group of", stored_->name, group.error()));
    groups_[name] = std::make_shared<Group>(std::move(*group));
    then({});
  });
}

// While it has been for nobody: producers would wait for consumers.
void TopicLog::delete_unused_group(const Done& then) {
  // Not a group of which somebody has had records.
  const auto group = own_group();
  if (stored_->consumers == Consumers::known || is_durable_ || group == nullptr ||
      group->position() != 0)
    return then({});
  // Stored before the group is deleted: if the broker dies in between, the next subscriber deletes it.
  if (auto remembered = remember(Consumers::absent, stored_->group); !remembered)
    return then(std::move(remembered));
  const auto remove = [name = stored_->group](const Topic& log) { return log.delete_group(name); };
  on_log(remove, then, [this, then](Result<void> deleted) {
    if (!deleted && deleted.error() == Errc::busy)  // A local process is a member of it.
      return then(remember(Consumers::known, stored_->group));
    if (!deleted && deleted.error() != Errc::not_found)
      return then(
          problem_of("cannot delete the consumer group of", stored_->name, deleted.error()));
    groups_.erase(stored_->group);
    then({});
  });
}

Outcome<void> TopicLog::remember(Consumers consumers, const std::string& group) {
  if (stored_->consumers == consumers && stored_->group == group) return {};
  if (auto set = share_.store.set_consumers(stored_->id, consumers, group); !set) return set;
  stored_->consumers = consumers;
  stored_->group = group;
  return {};
}

std::shared_ptr<Group> TopicLog::own_group() const {
  const auto found = groups_.find(stored_->group);
  return found == groups_.end() ? nullptr : found->second;
}

void TopicLog::open_part(const TopicUse& use, const Done& then) {
  switch (use.kind) {
    case TopicUse::Kind::look: return then({});
    case TopicUse::Kind::publish: return open_publish_buffer(use.partition, then);
    case TopicUse::Kind::consume: return open_dispatcher(group_of(use), then);
    case TopicUse::Kind::subscribe: return open_broadcaster(*use.encoding, then);
  }
}

void TopicLog::open_publish_buffer(std::optional<std::uint32_t> partition, const Done& then) {
  if (publish_buffers_.contains(partition)) return then({});
  const PublishBuffer::Options options{.partition = partition, .is_durable = is_durable_};
  const auto make = [options](const Topic& log) {
    return PublishBuffer::open_publisher(log, options);
  };
  on_log(make, then, [this, partition, then](Outcome<Publisher> publisher) {
    if (!publisher) return then(publisher.problem());
    const auto note = [this](std::uint64_t begin, std::uint64_t end, std::size_t bytes) {
      on_published(begin, end, bytes);
    };
    publish_buffers_[partition] = std::make_unique<PublishBuffer>(
        share_.loop, stored_->name, std::move(*publisher), on_failure(), note);
    then({});
  });
}

void TopicLog::open_dispatcher(const std::string& group, const Done& then) {
  if (dispatchers_.contains(group)) return then({});
  const auto join = [one = groups_.at(group)](const Topic&) { return GroupReader::open(*one); };
  on_log(join, then, [this, group, then](Outcome<GroupReader> reader) {
    if (!reader) return then(reader.problem());
    dispatchers_[group] = std::make_unique<GroupDispatcher>(
        share_.loop, share_.reads, *log_, std::move(*reader), share_.unsent, on_failure_of(group),
        [this] { throttle_.on_progress(); });
    then({});
  });
}

void TopicLog::open_broadcaster(const Encoding& encoding, const Done& then) {
  if (broadcasters_.contains(&encoding)) return then({});
  const auto encode = [name = stored_->name, call = encoding.for_subscriber](
                          std::string& out, const Record& record) { call(out, name, record); };
  const auto subscribe = [encode](const Topic& log) { return SubscriberReader::open(log, encode); };
  on_log(subscribe, then, [this, at = &encoding, then](Outcome<SubscriberReader> reader) {
    if (!reader) return then(reader.problem());
    broadcasters_[at] = std::make_unique<Broadcaster>(
        share_.loop, share_.reads, *log_, share_.backlog, std::move(*reader), on_failure());
    then({});
  });
}

// --- While it is open ---------------------------------------------------------------------------------

void TopicLog::on_published(std::uint64_t begin, std::uint64_t end, std::size_t bytes) {
  // Records of a durable topic may wait on disk; and offsets of one partition say nothing about another one.
  if (!is_durable_ && has_one_partition_) throttle_.add(end, bytes);
  const bool is_only_ours = std::exchange(published_, end) == begin && has_one_partition_;
  const auto poll = [&](auto& part) { is_only_ours ? part.poll_until(end) : part.poll(); };
  for (const auto& [group, dispatcher] : dispatchers_) poll(*dispatcher);
  for (const auto& [encoding, broadcaster] : broadcasters_) poll(*broadcaster);
}

// By all groups that have consumers.
std::optional<std::uint64_t> TopicLog::reached() const {
  std::optional<std::uint64_t> least;
  for (const auto& [group, dispatcher] : dispatchers_) {
    if (dispatcher->has_consumers())
      least = std::min(least.value_or(dispatcher->reached()), dispatcher->reached());
  }
  return least;
}

// Whether a part of it waits for the disk.
bool TopicLog::is_reading() const {
  const auto reads = [](const auto& one) { return one.second->is_reading(); };
  return std::any_of(dispatchers_.begin(), dispatchers_.end(), reads) ||
         std::any_of(broadcasters_.begin(), broadcasters_.end(), reads);
}

std::size_t TopicLog::unpublished() const {
  std::size_t waiting = 0;
  for (const auto& [partition, buffer] : publish_buffers_) waiting += buffer->waiting();
  return waiting;
}

void TopicLog::take_config() {
  for (const auto& [encoding, broadcaster] : broadcasters_)
    broadcaster->poll_later();  // It may be held up no more.
}

void TopicLog::seek(const std::string& group, const From& to, Done done) {
  in_turn(nullptr, [this, group, to, done = std::move(done)](const Turn& turn) {
    perform(TopicUse::consume_own(group), false, [this, to, done, turn](Outcome<void> ready) {
      if (!ready) return done(std::move(ready));
      const auto move = [group = groups_.at(stored_->group), to] { return group->seek(to); };
      on_worker(move, [this, done, turn](Result<void> moved) {
        if (moved) return done({});
        if (moved.error() != Errc::invalid_argument)
          return done(
              problem_of("cannot move the consumer group of", stored_->name, moved.error()));
        done(Problem{
            Errc::invalid_argument,
            has_one_partition_
                ? "there is no such offset in " + stored_->name + " yet"
                : stored_->name + " has several partitions: an offset does not say in which"});
      });
    });
  });
}

void TopicLog::count(std::function<void(TopicCounts)> done) {
  in_turn(nullptr, [this, done = std::move(done)](const Turn& turn) {
    attach([this, done, turn](const Outcome<void>& attached) {
      if (!attached) return done({});
      const auto group = own_group();
      if (!is_durable_) return done(counts_of(*log_, group.get()));
      // Others have their turn meanwhile.
      on_worker([log = log_, group] { return counts_of(*log, group.get()); }, done);
    });
  });
}

// --- Closing ------------------------------------------------------------------------------------------

// Called from inside of the objects that are then destroyed, so later.
std::function<void(Error)> TopicLog::on_failure() {
  return [this](Error error) {
    if (std::exchange(has_failed_, true)) return;
    const std::string why = describe(error);
    boost::asio::post(share_.loop, [weak = weak_from_this(), why] {
      if (const auto self = weak.lock()) self->fail(why);
    });
  };
}

// If only the group is gone, others go on.
std::function<void(Error)> TopicLog::on_failure_of(const std::string& group) {
  return [this, group](Error error) {
    if (error.code != Errc::closed) return on_failure()(error);
    boost::asio::post(share_.loop, [weak = weak_from_this(), group, number = opened_] {
      const auto self = weak.lock();
      if (self && self->opened_ == number)
        self->fail_group(group, "its consumer group was deleted");
    });
  };
}

void TopicLog::fail(const std::string& why) {
  if (!has_failed_) return;  // It was closed meanwhile.
  spdlog::error("topic {}: {}; its {} users are told", stored_->name, why, users_.size());
  close_users("the topic has failed");
  close_files();
}

void TopicLog::fail_group(const std::string& group, const std::string& why) {
  close_users(why, [&](const Membership& user) { return user.groups.contains(group); });
  dispatchers_.erase(group);
  if (const auto found = groups_.find(group); found != groups_.end()) {
    worker().add([handle = std::move(found->second)] {}, [] {});
    groups_.erase(found);
  }
}

void TopicLog::close_users(const std::string& why,
                           const std::function<bool(const Membership&)>& applies) {
  std::vector<std::pair<TopicUser*, std::uint64_t>> told;
  for (const auto& [user, membership] : users_) {
    if (!applies || applies(membership)) told.emplace_back(user, membership.number);
  }
  for (const auto& [user, number] : told) {
    if (!is_user(user, number)) continue;  // Those before it have closed it.
    users_.erase(user);
    drop_calls_of(*user);
    user->on_log_closed(why);
  }
  if (users_.empty() && log_) close_when_idle();
}

// The worker destroys the last handles: that may wait for the disk.
void TopicLog::close_files(bool shrinks, std::function<void()> done) {
  idle_.stop();
  broadcasters_.clear();
  dispatchers_.clear();
  publish_buffers_.clear();
  throttle_.begin_anew();
  published_ = 0;
  has_failed_ = false;
  if (!log_) return done();
  ++opened_;
  worker().add(
      [log = std::exchange(log_, {}), groups = std::exchange(groups_, {}), shrinks] {
        if (shrinks) (void)log->shrink();
      },
      std::move(done));
}

void TopicLog::shut_down() {
  is_shut_down_ = true;
  users_.clear();
  // What waits may share the ownership of this log, and is destroyed when nothing of it is in use.
  const auto calls = std::exchange(calls_, {});
  close_files();
}

void TopicLog::close_when_idle() {
  if (idle_.is_running()) return;
  idle_.start(share_.config.topic_idle_time, [this] {
    if (is_turn_taken_ || unpublished() != 0 || is_reading()) return close_when_idle();
    close_files(!is_durable_, share_.on_closed);  // After a burst.
  });
}

void TopicLog::close_if_deleted() {
  if (!log_ || !log_->is_deleted()) return;
  has_failed_ = true;
  fail("it was deleted");
}

void TopicLog::delete_files(Done done) {
  is_deleted_ = true;  // So that nobody opens it meanwhile.
  close_users("the topic was deleted");
  in_turn(nullptr, [this, done = std::move(done)](const Turn& turn) {
    close_files();
    const auto remove = [name = stored_->name, directory = share_.config.dir,
                         data_directory = share_.config.data_dir] {
      return delete_files_of(name, directory, data_directory);
    };
    on_worker(remove, [this, done, turn](Outcome<void> deleted) {
      // It may never have been used.
      if (deleted || deleted.problem().code == Errc::not_found) return done({});
      is_deleted_ = false;
      done(std::move(deleted));
    });
  });
}

}  // namespace leat::broker
