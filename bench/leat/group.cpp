#include "group.hpp"

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "leat/compat/simple_ipc.hpp"

namespace leat::bench {
namespace {

constexpr char kGroup[] = "members";

// A topic, and perhaps a group that gets every record of it.
void create_topic(const TemporaryTopics& topics, bool with_group, bool by_key = false) {
  topics.create(kLogTopic, {.capacity_bytes = kLogCapacityBytes, .policy = Policy::block});
  if (!with_group) return;
  (void)value_of(open_topic(topics.directory(), kLogTopic)
                     .group(kGroup, leat::GroupOptions{.from = From::beginning, .by_key = by_key}),
                 "make a group");
}

// Publishes records with keys, in a random order.
class KeyedSender {
 public:
  KeyedSender(const std::string& directory, Mode mode, std::uint32_t keys)
      : keys_{keys},
        publisher_{value_of(
            open_topic(directory, kLogTopic).publisher({.exclusive = mode == Mode::exclusive}),
            "open a publisher")} {}

  void send(Bytes message) {
    random_ = random_ * 6'364'136'223'846'793'005ULL + 1'442'695'040'888'963'407ULL;
    const std::uint64_t key = (random_ >> 33) % keys_;
    const NewRecord record{.key = Bytes{reinterpret_cast<const std::byte*>(&key), sizeof key},
                           .value = message};
    if (auto offset = publisher_.publish(record); !offset) [[unlikely]]
      throw topic_failure("publish", offset.error());
  }
  void flush() {}

 private:
  std::uint32_t keys_;
  Publisher publisher_;
  std::uint64_t random_ = 1;
};

class MemberSource {
 public:
  // A member that polls never sleeps.
  MemberSource(const std::string& directory, std::uint32_t batch, bool polls = false)
      : member_{open_topic(directory, kLogTopic), kGroup, MemberOptions{}, batch}, polls_{polls} {}

  template <class Visit>
  std::size_t take(const Visit& visit) {
    return member_.take(visit);
  }
  void wait() {
    if (polls_) {
      spin_.once();
    } else {
      (void)member_.wait(kBackoff);
    }
  }

 private:
  TopicMember member_;
  bool polls_;
  Spin spin_;
};

// ---- CSimpleIPC ---------------------------------------------------------------------------------

using Ipc = std::shared_ptr<CSimpleIPC>;  // One's own, or one that others use, too.

class IpcSender {
 public:
  explicit IpcSender(Ipc ipc) : ipc_{std::move(ipc)} {}

  void send(std::span<const std::byte> message) {
    if (!ipc_->write(message.data(), message.size())) {
      throw topic_failure("write a block", CSimpleIPC::lastError());
    }
  }
  void flush() {}

 private:
  Ipc ipc_;
};

class IpcSource {
 public:
  IpcSource(std::size_t size, Ipc ipc) : ipc_{std::move(ipc)}, buffer_(size) {}

  template <class Visit>
  std::size_t take(const Visit& visit) {
    if (!ipc_->read(buffer_.data(), buffer_.size(), std::exchange(timeout_ms_, 0))) {
      const Error error = CSimpleIPC::lastError();
      if (error.code != Errc::timeout) throw topic_failure("read a block", error);
      return 0;
    }
    visit(std::span<const std::byte>(buffer_.data(), CSimpleIPC::lastReadSize()));
    return 1;
  }
  // There is no call that waits without reading, so the next take() waits.
  void wait() noexcept { timeout_ms_ = static_cast<std::uint32_t>(kBackoff.count()); }

 private:
  Ipc ipc_;
  std::vector<std::byte> buffer_;
  std::uint32_t timeout_ms_ = 0;
};

}  // namespace

Load load_of(const GroupLoad& group) {
  constexpr std::uint64_t kSlowestPerSecond = 20'000;
  return {.size = group.size,
          .count = (group.records + group.publishers - 1) / group.publishers,
          .warm_up = warm_up_of_log(group.size, group.publishers),
          .verify = group.verify,
          .pattern = Pattern::oneway,
          .senders = group.publishers,
          .receivers = group.members,
          .time_limit = std::chrono::seconds{120 + group.records / kSlowestPerSecond}};
}

MessageCost measure_group(const GroupLoad& group, const std::vector<int>& cpus) {
  const TemporaryTopics topics;
  create_topic(topics, true, group.by_key);
  const Load load = load_of(group);
  const Receipts receipts(load);
  const auto make_receiver = [&](std::uint32_t i) {
    return SharingReceiver<MemberSource>(load, receipts, i, topics.directory(), group.batch);
  };
  if (group.keys != 0) {
    const auto make_sender = [&](std::uint32_t i) {
      return Sending<KeyedSender>(load, i, topics.directory(), group.mode, group.keys);
    };
    return measure_sharing(load, receipts, cpus, make_sender, make_receiver);
  }
  const auto make_sender = [&](std::uint32_t i) {
    return Sending<LogSender>(load, i, topics.directory(), group.mode);
  };
  return measure_sharing(load, receipts, cpus, make_sender, make_receiver);
}

MessageCost measure_simple_ipc(Instance instance, const GroupLoad& group,
                               const std::vector<int>& cpus) {
  const TemporaryTopics topics;
  const Load load = load_of(group);
  const Receipts receipts(load);
  Ipc first;  // Made by the process that has the threads.
  const auto failure = [](const char* what) {
    return topic_failure(what, CSimpleIPC::lastError());
  };
  const auto one_to_use = [&] {
    if (instance == Instance::shared) return first;
    auto own = std::make_shared<CSimpleIPC>();
    if (!own->attachToConnectionPoint(first->getConnectionPointName())) throw failure("attach");
    return own;
  };
  const auto run_in_one_process = [&](const std::vector<Role>& threads,
                                      std::chrono::seconds limit) {
    const auto run = [&](Barrier&) {
      ::setenv("LEAT_DIR", topics.directory().c_str(), 1);
      first = std::make_shared<CSimpleIPC>();
      if (!first->createConnectionPoint(static_cast<std::uint32_t>(load.size), kIpcBlocks)) {
        throw failure("create a connection point");
      }
      run_as_threads(threads);
    };
    run_roles({{"process of all threads", kAnyCpu, run}}, limit);
  };
  return measure_sharing(
      load, receipts, cpus,
      [&](std::uint32_t i) { return Sending<IpcSender>(load, i, one_to_use()); },
      [&](std::uint32_t i) {
        return SharingReceiver<IpcSource>(load, receipts, i, load.size, one_to_use());
      },
      run_in_one_process);
}

double publisher_cpu_ns(const GroupLoad& group, std::uint64_t rate, bool with_group,
                        const std::vector<int>& cpus) {
  const TemporaryTopics topics;
  create_topic(topics, with_group);
  Load load = load_of(group);
  load.senders = load.receivers = 1;
  load.warm_up = 0;
  load.count = group.records;
  const Receipts receipts(load);
  const Shared<RoleTimes> publisher_times;
  const RolePlacement placement = place_on(cpus, 1, 1);

  std::vector<Role> roles;
  roles.push_back({"publisher", placement.senders.cpu(0), [&](Barrier& barrier) {
                     Sending<LogSender> sender(load, 0, topics.directory(), group.mode);
                     barrier.meet();
                     send_and_time_at_rate(sender, load.count, rate, *publisher_times);
                   }});
  roles.push_back({"subscriber", placement.receivers.cpu(0), [&](Barrier& barrier) {
                     InOrder<LogReceiver> receiver(load, topics.directory());
                     RoleTimes times;
                     barrier.meet();
                     receiver.receive(load.count, times);
                   }});
  if (with_group) {
    roles.push_back({"member", placement.receivers.cpu(1), [&](Barrier& barrier) {
                       SharingReceiver<MemberSource> receiver(load, receipts, 0, topics.directory(),
                                                              std::uint32_t{0}, true);
                       RoleTimes times;
                       barrier.meet();
                       receiver.receive(load.count, times);
                     }});
  }
  run_roles(roles, load.time_limit);
  if (with_group) receipts.check();
  return static_cast<double>(publisher_times->cpu_ns) / static_cast<double>(load.count);
}

}  // namespace leat::bench
