// The processes (or threads) of a measurement of a group: what sends, what takes and verifies.
//
//     TakingMember member(load, board, receipts, 0, GroupSource(load, topics.directory()));
//     member.receive(total);  // with all other members together
//
// Each is made by whoever uses it. All throw Failure.
#pragma once

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "group_run.hpp"
#include "leat/compat/simple_ipc.hpp"
#include "log_roles.hpp"
#include "topics.hpp"

namespace leat::bench {

inline constexpr char kGroup[] = "members";
inline constexpr std::chrono::milliseconds kNap{5};  // After it a member looks whether all is done.

// What all processes of a measurement share; zero at first.
struct Board {
  struct alignas(kCacheLine) Count {
    std::atomic<std::uint64_t> value{0};
  };
  std::array<RoleTimes, kMaxGroupRoles> publishers{};
  std::array<RoleTimes, kMaxGroupRoles> members{};
  std::array<Count, kMaxGroupRoles> received{};  // By member; what it knew when it found nothing.
  std::atomic<std::uint32_t> finished{0};        // Publishers of a peer's queue, in all phases.
};

// Verifies what one member receives.
class Checker {
 public:
  Checker(const GroupLoad& load, const Receipts& receipts, std::uint32_t member)
      : payload_{load.size, load.verify},
        receipts_{receipts},
        member_{member},
        bits_{publisher_bits(load.publishers)} {
    receipts_.prefault(member);
  }

  void check(Bytes value) {
    if (value.size() != payload_.size()) {
      throw Failure(
          fmt::format("a record has {} bytes instead of {}", value.size(), payload_.size()));
    }
    std::uint64_t sequence = 0;
    std::memcpy(&sequence, value.data(), sizeof sequence);
    if (!payload_.check(value.data(), sequence)) {
      throw Failure(fmt::format("a record that begins with {} is not as it was sent", sequence));
    }
    const std::uint64_t publisher = sequence & ((std::uint64_t{1} << bits_) - 1);
    if (!receipts_.note(member_, publisher, sequence >> bits_)) {
      throw Failure(fmt::format("record {} of publisher {} came twice, or was never sent",
                                sequence >> bits_, publisher));
    }
    ++count_;
  }

  std::uint64_t count() const noexcept { return count_; }

 private:
  Payload payload_;
  const Receipts& receipts_;
  std::uint32_t member_;
  unsigned bits_;
  std::uint64_t count_ = 0;
};

enum class WhenIdle { sleep, poll };

// Records from a member of the topic's group.
class GroupSource {
 public:
  GroupSource(const GroupLoad& load, const std::string& directory,
              WhenIdle when_idle = WhenIdle::sleep)
      : batch_{load.batch},
        when_idle_{when_idle},
        group_{value_of(open_topic(directory, kLogTopic).find_group(kGroup), "open the group")},
        member_{value_of(group_.join(), "join the group")} {}

  // Verifies what is there and returns how many records that were.
  std::size_t take(Checker& checker) {
    if (batch_ == 0) {
      return value_of(
          member_.poll(kPollLimit, [&](const Delivery& delivery) { check(checker, delivery); }),
          "take");
    }
    if (batch_ == 1) {
      const auto delivery = member_.receive(Deadline::immediate());
      if (!delivery) return nothing(delivery.error());
      check(checker, *delivery);
      value_of(member_.acknowledge(*delivery), "acknowledge");
      return 1;
    }
    deliveries_.clear();
    const auto taken = member_.receive(deliveries_, batch_, Deadline::immediate());
    if (!taken) return nothing(taken.error());
    for (const Delivery& delivery : deliveries_) {
      check(checker, delivery);
      value_of(member_.acknowledge(delivery), "acknowledge");
    }
    return *taken;
  }

  // Until there may be something, but not for long.
  void wait() {
    if (when_idle_ == WhenIdle::poll) {
      spin_.once();
    } else if (auto waited = member_.wait(kNap); !waited && waited.error().code != Errc::timeout) {
      throw topic_failure("wait", waited.error());
    }
  }

 private:
  static constexpr std::size_t kPollLimit = 1000;

  static std::size_t nothing(Error error) {
    if (error.code != Errc::timeout) throw topic_failure("take", error);
    return 0;
  }

  // Each record is to be delivered once: nobody gives one back, and nobody dies.
  static void check(Checker& checker, const Delivery& delivery) {
    if (delivery.deliveries != 1) {
      throw Failure(fmt::format("a record was delivered {} times", delivery.deliveries));
    }
    checker.check(delivery.record.value);
  }

  std::uint32_t batch_;
  WhenIdle when_idle_;
  Group group_;
  Member member_;
  std::vector<Delivery> deliveries_;
  Spin spin_;
};

// Takes until all members together have everything.
template <class Source>
class TakingMember {
 public:
  TakingMember(const GroupLoad& load, Board& board, const Receipts& receipts, std::uint32_t index,
               Source source)
      : members_{load.members},
        board_{board},
        index_{index},
        checker_{load, receipts, index},
        source_{std::move(source)} {}

  // `total`: of all members, since they were made.
  void receive(std::uint64_t total) {
    RoleTimes& times = board_.members[index_];
    const std::uint64_t cpu_before_ns = thread_cpu_ns();
    for (bool found_some = true;;) {
      if (source_.take(checker_) != 0) {
        found_some = true;
        continue;
      }
      if (std::exchange(found_some, false)) {  // Time counts until here, not until all know.
        times.ended_ns = now_ns();
        times.cpu_ns = thread_cpu_ns() - cpu_before_ns;
        // relaxed, as its reading: only the counts themselves matter.
        board_.received[index_].value.store(checker_.count(), std::memory_order_relaxed);
      }
      if (received_by_all() >= total) return;
      source_.wait();
    }
  }

 private:
  std::uint64_t received_by_all() const noexcept {
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < members_; ++i) {
      sum += board_.received[i].value.load(std::memory_order_relaxed);
    }
    return sum;
  }

  std::uint32_t members_;
  Board& board_;
  std::uint32_t index_;
  Checker checker_;
  Source source_;
};

// CSimpleIPC's blocks. `ipc` may be one that others use, too.
class IpcPublisher {
 public:
  IpcPublisher(const GroupLoad& load, std::shared_ptr<CSimpleIPC> ipc, std::uint32_t index)
      : ipc_{std::move(ipc)},
        payload_{load.size, load.verify},
        outgoing_{payload_, index, std::uint64_t{1} << publisher_bits(load.publishers)} {}

  void publish(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::span<const std::byte> record = outgoing_.next();
      if (!ipc_->write(record.data(), record.size())) {
        throw topic_failure("write a block", CSimpleIPC::lastError());
      }
    }
  }

 private:
  std::shared_ptr<CSimpleIPC> ipc_;
  Payload payload_;
  OutgoingPayloads outgoing_;
};

class IpcSource {
 public:
  IpcSource(const GroupLoad& load, std::shared_ptr<CSimpleIPC> ipc)
      : ipc_{std::move(ipc)}, buffer_(load.size) {}

  std::size_t take(Checker& checker) {
    if (!ipc_->read(buffer_.data(), buffer_.size(), std::exchange(timeout_ms_, 0))) {
      const Error error = CSimpleIPC::lastError();
      if (error.code != Errc::timeout) throw topic_failure("read a block", error);
      return 0;
    }
    checker.check(Bytes{buffer_.data(), CSimpleIPC::lastReadSize()});
    return 1;
  }

  // Nothing waits without reading: the next take() does.
  void wait() noexcept { timeout_ms_ = static_cast<std::uint32_t>(kNap.count()); }

 private:
  std::shared_ptr<CSimpleIPC> ipc_;
  std::vector<std::byte> buffer_;
  std::uint32_t timeout_ms_ = 0;
};

class PeerPublisher {
 public:
  PeerPublisher(const GroupLoad& load, PeerQueue& queue, Board& board, std::uint32_t index)
      : load_{load},
        queue_{queue},
        board_{board},
        payload_{load.size, load.verify},
        outgoing_{payload_, index, std::uint64_t{1} << publisher_bits(load.publishers)} {}

  // The last of the publishers sends each member an empty record: the end.
  void publish(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) queue_.send(outgoing_.next());
    // relaxed: whoever counts last has sent its own; those of the others are in the queue already.
    const std::uint32_t finished = board_.finished.fetch_add(1, std::memory_order_relaxed) + 1;
    if (finished % load_.publishers != 0) return;
    for (std::uint32_t i = 0; i < load_.members; ++i) queue_.send({});
  }

 private:
  const GroupLoad& load_;
  PeerQueue& queue_;
  Board& board_;
  Payload payload_;
  OutgoingPayloads outgoing_;
};

class PeerMember {
 public:
  PeerMember(const GroupLoad& load, PeerQueue& queue, Board& board, const Receipts& receipts,
             std::uint32_t index)
      : queue_{queue},
        times_{board.members[index]},
        checker_{load, receipts, index},
        buffer_(load.size) {}

  // Until the end that the publishers send.
  void receive(std::uint64_t /*total*/) {
    const std::uint64_t cpu_before_ns = thread_cpu_ns();
    while (const std::size_t size = queue_.receive(buffer_)) {
      checker_.check(Bytes{buffer_.data(), size});
    }
    times_.ended_ns = now_ns();
    times_.cpu_ns = thread_cpu_ns() - cpu_before_ns;
  }

 private:
  PeerQueue& queue_;
  RoleTimes& times_;
  Checker checker_;
  std::vector<std::byte> buffer_;
};

}  // namespace leat::bench
