#include "group_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "group_roles.hpp"

namespace leat::bench {
namespace {

// A few laps of the topic; of a peer's queue, which is much smaller and slower, some.
struct Amounts {
  std::uint64_t warm_up, measured;  // Of each publisher.

  std::uint64_t all() const noexcept { return warm_up + measured; }
};

Amounts amounts_of(const GroupLoad& load, bool of_peer) {
  const std::uint64_t measured = (load.records + load.publishers - 1) / load.publishers;
  const std::uint64_t lap = kLogCapacityBytes / ((load.size + 16) / 16 * 16);
  return {of_peer ? measured / 10 + 1 : 2 * lap / load.publishers + 1, measured};
}

LogOptions log_options(const GroupLoad& load) {
  return {.size = load.size,
          .records = load.records,
          .publishers = load.publishers,
          .mode = load.mode,
          .verify = load.verify,
          .keys = load.keys};
}

// A topic with a group that gets every record of it.
void create_topic_with_group(const TemporaryTopics& topics, bool with_group, bool by_key = false) {
  topics.create(kLogTopic, {.capacity_bytes = kLogCapacityBytes, .policy = Policy::block});
  if (!with_group) return;
  (void)value_of(open_topic(topics.directory(), kLogTopic)
                     .group(kGroup, leat::GroupOptions{.from = From::beginning, .by_key = by_key}),
                 "make a group");
}

GroupCost summarise(const GroupLoad& load, const Amounts& each, const Board& board) {
  std::uint64_t started_ns = UINT64_MAX;
  std::uint64_t ended_ns = 0;
  std::uint64_t publisher_cpu_ns = 0, publisher_wait_ns = 0, member_cpu_ns = 0;
  for (std::uint32_t i = 0; i < load.publishers; ++i) {
    const RoleTimes& times = board.publishers[i];
    started_ns = std::min(started_ns, times.started_ns);
    publisher_cpu_ns += times.cpu_ns;
    publisher_wait_ns += times.wait_ns;
  }
  for (std::uint32_t i = 0; i < load.members; ++i) {
    ended_ns = std::max(ended_ns, board.members[i].ended_ns);
    member_cpu_ns += board.members[i].cpu_ns;
  }
  const auto of_one = [&](std::uint64_t sum) {
    return static_cast<double>(sum) / static_cast<double>(each.measured * load.publishers);
  };
  return {.ns_per_record = of_one(ended_ns - started_ns),
          .publisher_cpu_ns_per_record = of_one(publisher_cpu_ns),
          .publisher_wait_ns_per_record = of_one(publisher_wait_ns),
          .member_cpu_ns_per_record = of_one(member_cpu_ns)};
}

std::chrono::seconds time_limit(const GroupLoad& load) {
  constexpr std::uint64_t kSlowestPerSecond = 20'000;
  return std::chrono::seconds{120 + load.records / kSlowestPerSecond};
}

// `make_publisher(index)` and `make_member(index)` are called by each role, and `run` runs them all.
template <class MakePublisher, class MakeMember, class Run = decltype(&run_roles)>
GroupCost measure(const GroupLoad& load, const Amounts& each, const std::vector<int>& cpus,
                  Board& board, const Receipts& receipts, const MakePublisher& make_publisher,
                  const MakeMember& make_member, const Run& run = &run_roles) {
  const LogPlacement placement = place_log(cpus, load.publishers, load.members);
  std::vector<Role> roles;
  for (std::uint32_t i = 0; i < load.publishers; ++i) {
    roles.push_back({"publisher", placement.publishers.cpu(i), [&, i](Barrier& barrier) {
                       auto publisher = make_publisher(i);
                       barrier.meet();
                       publisher.publish(each.warm_up);
                       barrier.meet();
                       measure_publishing(board.publishers[i],
                                          [&] { publisher.publish(each.measured); });
                       barrier.meet();
                     }});
  }
  for (std::uint32_t i = 0; i < load.members; ++i) {
    roles.push_back({"member", placement.subscribers.cpu(i), [&, i](Barrier& barrier) {
                       auto member = make_member(i);
                       barrier.meet();
                       member.receive(each.warm_up * load.publishers);
                       barrier.meet();
                       member.receive(each.all() * load.publishers);
                       barrier.meet();  // Nobody leaves before: that would be part of the time.
                     }});
  }
  run(roles, time_limit(load));
  receipts.check();
  return summarise(load, each, board);
}

}  // namespace

Receipts::Receipts(std::uint32_t members, std::uint32_t publishers, std::uint64_t records_of_each)
    : publishers_{publishers},
      records_of_each_{records_of_each},
      words_of_each_{static_cast<std::size_t>(records_of_each / 64 + 1)} {
  for (std::uint32_t i = 0; i < members; ++i) {
    bits_.push_back(std::make_unique<SharedMemory>(publishers * words_of_each_ * 8));
  }
}

bool Receipts::note(std::uint32_t member, std::uint64_t publisher,
                    std::uint64_t record) const noexcept {
  if (publisher >= publishers_ || record >= records_of_each_) return false;
  std::uint64_t& word = words(member)[publisher * words_of_each_ + record / 64];
  const std::uint64_t bit = std::uint64_t{1} << (record % 64);
  if ((word & bit) != 0) return false;
  word |= bit;
  return true;
}

void Receipts::check() const {
  for (std::uint64_t publisher = 0; publisher < publishers_; ++publisher) {
    for (std::uint64_t record = 0; record < records_of_each_; record += 64) {
      const std::uint64_t left = records_of_each_ - record;
      const std::uint64_t wanted = left >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << left) - 1;
      std::uint64_t once = 0, twice = 0;
      for (std::uint32_t member = 0; member < bits_.size(); ++member) {
        const std::uint64_t word = words(member)[publisher * words_of_each_ + record / 64];
        twice |= once & word;
        once |= word;
      }
      const auto complain = [&](std::uint64_t wrong, const char* what) {
        if (wrong == 0) return;
        throw Failure(fmt::format("record {} of publisher {} was received by {}",
                                  record + static_cast<std::uint64_t>(std::countr_zero(wrong)),
                                  publisher, what));
      };
      complain(twice, "two members");
      complain(wanted & ~once, "nobody");
    }
  }
}

GroupCost measure_group(const GroupLoad& load, const std::vector<int>& cpus) {
  const TemporaryTopics topics;
  create_topic_with_group(topics, true, load.by_key);
  const Amounts each = amounts_of(load, false);
  const Shared<Board> board;
  const Receipts receipts(load.members, load.publishers, each.all());
  const LogOptions log = log_options(load);
  return measure(
      load, each, cpus, *board, receipts,
      [&](std::uint32_t i) { return LogPublisher(log, topics.directory(), i); },
      [&](std::uint32_t i) {
        return TakingMember(load, *board, receipts, i, GroupSource(load, topics.directory()));
      });
}

GroupCost measure_simple_ipc(Instance instance, const GroupLoad& load,
                             const std::vector<int>& cpus) {
  const TemporaryTopics topics;
  const Amounts each = amounts_of(load, false);
  const Shared<Board> board;
  const Receipts receipts(load.members, load.publishers, each.all());
  std::shared_ptr<CSimpleIPC> first;  // Made by the process that has the threads.
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
    run_roles(
        {{"process of all threads", kAnyCpu,
          [&](Barrier&) {
            ::setenv("LEAT_DIR", topics.directory().c_str(), 1);
            first = std::make_shared<CSimpleIPC>();
            if (!first->createConnectionPoint(static_cast<std::uint32_t>(load.size), kIpcBlocks)) {
              throw failure("create a connection point");
            }
            run_as_threads(threads);
          }}},
        limit);
  };
  return measure(
      load, each, cpus, *board, receipts,
      [&](std::uint32_t i) { return IpcPublisher(load, one_to_use(), i); },
      [&](std::uint32_t i) {
        return TakingMember(load, *board, receipts, i, IpcSource(load, one_to_use()));
      },
      run_in_one_process);
}

GroupCost measure_peer(Peer peer, const GroupLoad& load, const std::vector<int>& cpus) {
  const auto queue = make_peer_queue(peer, load.size);
  const Amounts each = amounts_of(load, true);
  const Shared<Board> board;
  const Receipts receipts(load.members, load.publishers, each.all());
  return measure(
      load, each, cpus, *board, receipts,
      [&](std::uint32_t i) { return PeerPublisher(load, *queue, *board, i); },
      [&](std::uint32_t i) { return PeerMember(load, *queue, *board, receipts, i); });
}

double publisher_cpu_ns(const GroupLoad& load, std::uint64_t rate, bool with_group,
                        const std::vector<int>& cpus) {
  const TemporaryTopics topics;
  create_topic_with_group(topics, with_group);
  LogOptions log = log_options(load);
  log.publishers = 1;
  log.rate = rate;
  const Shared<Board> board;
  const Receipts receipts(1, 1, load.records);
  const LogPlacement placement = place_log(cpus, 1, 1);

  std::vector<Role> roles;
  roles.push_back({"publisher", placement.publishers.cpu(0), [&](Barrier& barrier) {
                     LogPublisher publisher(log, topics.directory(), 0);
                     barrier.meet();
                     publisher.measure_at_rate(load.records, board->publishers[0]);
                   }});
  roles.push_back({"subscriber", placement.subscribers.cpu(0), [&](Barrier& barrier) {
                     LogSubscriber subscriber(log, topics.directory());
                     barrier.meet();
                     subscriber.receive(load.records);
                   }});
  if (with_group) {
    roles.push_back({"member", placement.subscribers.cpu(1), [&](Barrier& barrier) {
                       GroupLoad one = load;
                       one.publishers = one.members = 1;
                       TakingMember member(one, *board, receipts, 0,
                                           GroupSource(one, topics.directory(), WhenIdle::poll));
                       barrier.meet();
                       member.receive(load.records);
                     }});
  }
  run_roles(roles, time_limit(load));
  if (with_group) receipts.check();
  return static_cast<double>(board->publishers[0].cpu_ns) / static_cast<double>(load.records);
}

}  // namespace leat::bench
