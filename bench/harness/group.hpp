// The harness of queues and groups, in which each message goes to one of several receivers: that of one
// way, with receivers that note which messages they got.
//
//     const Receipts receipts(load);
//     const MessageCost cost = measure_sharing(
//         load, receipts, cpus, [&](std::uint32_t i) { return Sending<Side>(load, i, …); },
//         [&](std::uint32_t i) { return SharingReceiver<Source>(load, receipts, i, …); });
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "one_way.hpp"

namespace leat::bench {

inline constexpr std::uint32_t kMaxGroupRoles = 64;  // Of each: senders, receivers.
// After this time a receiver that waits checks whether all messages have been received.
inline constexpr std::chrono::milliseconds kBackoff{5};

// Which messages each receiver got: one bit for each, in shared memory. Receivers do not look at each
// other's bits, only at how many messages the others have received.
class Receipts {
 public:
  Receipts(std::uint32_t receivers, std::uint32_t senders, std::uint64_t messages_of_each);
  explicit Receipts(const Load& load)
      : Receipts{load.receivers, load.senders, load.warm_up + load.count} {}

  // In the receiver's process, before the time starts.
  void prefault(std::uint32_t receiver) const { bits_[receiver]->prefault(); }
  // False if the receiver had it before, or if no sender has such a message.
  bool note(std::uint32_t receiver, std::uint64_t sender, std::uint64_t message) const noexcept;
  // Throws Failure if a message was received twice or not at all.
  void check() const;

  // How many messages this receiver has received so far.
  void set_count(std::uint32_t receiver, std::uint64_t count) const noexcept;
  std::uint64_t count_of_all() const noexcept;

 private:
  std::uint64_t* words(std::uint32_t receiver) const noexcept {
    return reinterpret_cast<std::uint64_t*>(bits_[receiver]->data());
  }

  struct alignas(kCacheLine) Count {
    std::atomic<std::uint64_t> value{0};
  };

  std::uint32_t senders_;
  std::uint64_t messages_of_each_;
  std::size_t words_of_each_;
  std::vector<std::unique_ptr<SharedMemory>> bits_;  // By receiver, then by sender.
  Shared<std::array<Count, kMaxGroupRoles>> counts_;
};

// Verifies what one receiver gets.
class Checker {
 public:
  Checker(const Load& load, const Receipts& receipts, std::uint32_t receiver)
      : payload_{load.size, load.verify},
        receipts_{receipts},
        receiver_{receiver},
        numbering_{load.senders} {
    receipts_.prefault(receiver);
  }

  void check(std::span<const std::byte> message) {
    if (message.size() != payload_.size()) fail_size(message.size());
    std::uint64_t sequence = 0;
    std::memcpy(&sequence, message.data(), sizeof sequence);
    if (!payload_.check(message.data(), sequence)) fail_content(sequence);
    const std::uint64_t sender = numbering_.sender_of(sequence);
    const std::uint64_t index = numbering_.index_of(sequence);
    if (!receipts_.note(receiver_, sender, index)) fail_receipt(sender, index);
    ++count_;
  }

  std::uint64_t count() const noexcept { return count_; }

 private:
  [[noreturn]] void fail_size(std::size_t size) const;
  [[noreturn]] static void fail_content(std::uint64_t sequence);
  [[noreturn]] static void fail_receipt(std::uint64_t sender, std::uint64_t index);

  Payload payload_;
  const Receipts& receipts_;
  std::uint32_t receiver_;
  Numbering numbering_;
  std::uint64_t count_ = 0;
};

// Takes messages until all receivers together have all of them. A Source has
//
//     std::size_t take(visit);  // Passes what is there to visit(bytes); returns how many.
//     void wait();             // Until there may be something, but no longer than kBackoff.
template <class Source>
class SharingReceiver {
 public:
  template <class... Arguments>
  SharingReceiver(const Load& load, const Receipts& receipts, std::uint32_t index,
                  Arguments&&... of_source)
      : receipts_{receipts},
        index_{index},
        checker_{load, receipts, index},
        source_(std::forward<Arguments>(of_source)...) {}

  void receive(std::uint64_t count, RoleTimes& times) {
    expected_ += count;
    const auto visit = [&](std::span<const std::byte> message) { checker_.check(message); };
    for (bool found_some = true;;) {
      if (source_.take(visit) != 0) {
        found_some = true;
        continue;
      }
      if (std::exchange(found_some, false)) {
        times.end();  // The time counts until here, not until all receivers know that it is over.
        receipts_.set_count(index_, checker_.count());
      }
      if (receipts_.count_of_all() >= expected_) return;
      source_.wait();
    }
  }

 private:
  const Receipts& receipts_;
  std::uint32_t index_;
  std::uint64_t expected_ = 0;  // By all receivers together, so far.
  Checker checker_;
  Source source_;
};

// Throws Failure unless each message was received exactly once.
template <class MakeSender, class MakeReceiver, class Run = decltype(&run_roles)>
MessageCost measure_sharing(const Load& load, const Receipts& receipts,
                            const std::vector<int>& cpus, const MakeSender& make_sender,
                            const MakeReceiver& make_receiver, const Run& run = &run_roles) {
  const Measured measured = measure_one_way(load, place_on(cpus, load.senders, load.receivers),
                                            make_sender, make_receiver, run);
  receipts.check();
  return cost_per_message(measured, load);
}

}  // namespace leat::bench
