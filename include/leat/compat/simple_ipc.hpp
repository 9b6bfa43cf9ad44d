// CSimpleIPC's interface on a topic and a group: programs written for CSimpleIPC compile
// against this header.
//
//     CSimpleIPC writer;
//     writer.createConnectionPoint(sizeof(number), 256);
//     writer.write(&number, sizeof(number));
//     CSimpleIPC reader;  // in any process
//     if (reader.attachToConnectionPoint(name, 5000)) reader.read(&number, sizeof(number));
//
// A connection point is a queue of blocks; each block goes to one reader. Any number of instances,
// in any number of processes, write and read it, and each instance may be used by any number of
// threads at once. Nothing throws: calls return false or null, and lastError() has the reason. What
// the article left open is decided in docs/guide/simple_ipc.md.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "leat/compat/simple_ipc_point.hpp"
#include "leat/leat.hpp"
#include "leat/os/forkable_mutex.hpp"

#ifndef INFINITE
inline constexpr std::uint32_t INFINITE = 0xffff'ffff;  // A timeout, with Windows' name.
#endif

namespace leat::inline v0::compat {

// Ends one wait: a stop token, or a descriptor that becomes readable (an eventfd). Null or 0: none.
class StopOn {
 public:
  StopOn() noexcept = default;
  StopOn(std::nullptr_t) noexcept {}
  StopOn(int fd) noexcept : fd_{fd > 0 ? fd : -1} {}
  StopOn(std::stop_token token) noexcept : token_{std::move(token)} {}

  const std::stop_token& token() const noexcept { return token_; }
  int fd() const noexcept { return fd_; }
  bool is_requested() const noexcept {
    return fd_ < 0 ? token_.stop_requested() : leat::detail::is_readable(fd_);
  }

 private:
  std::stop_token token_;
  int fd_ = -1;
};

enum class BlockStatus {
  empty,     // holds no block and never did
  acquired,  // `result` is the block, until releaseLockedBlock()
  released,  // holds no block any more: it was published, or freed for writers
  failed,    // the last acquireBlock() got none: timeout, stopped, or an error
  lost,      // release failed: a written block is not delivered, a read one is redelivered
};

// Common part of the two descriptors.
struct BlockDescriptor {
  void* result = nullptr;  // the block while `acquired`, otherwise null
  std::size_t size = 0;    // of the block in bytes; for readers, of what was written
  BlockStatus status = BlockStatus::empty;
  leat::Error error = {};  // why it failed or was lost
};

// Outcome of a thread's last call.
struct LastCall {
  leat::Error error = {};
  const char* text = nullptr;  // Null: the text of describe().
  std::size_t read_size = 0;
};

}  // namespace leat::inline v0::compat

class CSimpleIPC;

// A block to write in place. A descriptor that is destroyed while acquired does not deliver its
// block, so an object whose constructor failed need not be published.
struct BlockWriteDescriptor : leat::compat::BlockDescriptor {
  BlockWriteDescriptor() = default;
  BlockWriteDescriptor(const BlockWriteDescriptor&) = delete;
  BlockWriteDescriptor& operator=(const BlockWriteDescriptor&) = delete;

 private:
  friend class CSimpleIPC;
  leat::compat::ConnectionPoint* point_ = nullptr;
  leat::compat::HandlePool<leat::Publisher>::Lease lease_;
  std::optional<leat::Claim> claim_;  // Destroyed before lease_.
};

// A block to read in place. A descriptor that is destroyed while acquired returns its block, which
// goes to the next reader.
struct BlockReadDescriptor : leat::compat::BlockDescriptor {
  BlockReadDescriptor() = default;
  BlockReadDescriptor(const BlockReadDescriptor&) = delete;
  BlockReadDescriptor& operator=(const BlockReadDescriptor&) = delete;
  ~BlockReadDescriptor() {
    if (delivery_) (void)lease_.handle().member.requeue(*delivery_);
  }

 private:
  friend class CSimpleIPC;
  leat::compat::ConnectionPoint* point_ = nullptr;
  leat::compat::HandlePool<leat::compat::Reader>::Lease lease_;
  std::optional<leat::Delivery> delivery_;
};

// Create, attach and destroy only while no other thread uses the instance, and destroy its
// descriptors before it. All other functions: any thread at any time.
class CSimpleIPC {
 public:
  using BlockWriteDescriptor = ::BlockWriteDescriptor;
  using BlockReadDescriptor = ::BlockReadDescriptor;
  using StopOn = leat::compat::StopOn;

  // The article has no default for it.
  static constexpr std::uint32_t kAttachTimeout = 5000;  // ms

  CSimpleIPC() = default;
  CSimpleIPC(const CSimpleIPC&) = delete;
  CSimpleIPC& operator=(const CSimpleIPC&) = delete;

  // Creates a connection point; without a name it gets a unique one. At most blockCount *
  // maxExpansions blocks of blockSize bytes can be outstanding. There is memory for blockCount of
  // them; memory for as many more is added whenever no more than minExpansionDistance are free.
  //   invalid_argument
  //   busy       this instance already has a connection point
  //   exists     the name is taken
  //   no_space
  bool createConnectionPoint(std::uint32_t blockSize, std::uint32_t blockCount,
                             std::uint32_t maxExpansions = 1, bool preAllocate = false,
                             std::uint32_t minExpansionDistance = 0,
                             const std::string& name = {}) noexcept {
    return guarded([&] {
      if (point_ != nullptr) return fail(leat::Errc::busy, kAttachedAlready);
      const leat::compat::BlockSettings settings{.block_size = blockSize,
                                                 .block_count = blockCount,
                                                 .max_expansions = maxExpansions,
                                                 .min_expansion_distance = minExpansionDistance,
                                                 .pre_allocate = preAllocate};
      if (!settings.is_valid()) return fail(leat::Errc::invalid_argument, kBadSettings);
      if (!name.empty() && !leat::compat::ConnectionPoint::is_valid_name(name))
        return fail(leat::Errc::invalid_argument, kBadName);
      auto point = leat::compat::ConnectionPoint::create(settings, name);
      if (!point)
        return fail(point.error(), point.error() == leat::Errc::exists ? kTaken : nullptr);
      const std::lock_guard guard{stopping_};
      point_ = std::move(*point);
      return succeed();
    });
  }

  // The connection point's name, for other instances; empty if there is none.
  std::wstring getConnectionPoint() const {
    const std::string name = getConnectionPointName();
    return {name.begin(), name.end()};
  }
  std::string getConnectionPointName() const {
    return point_ == nullptr ? std::string{} : point_->name();
  }

  // Attaches to a connection point; waits up to `timeout` ms for it to be created.
  //   not_found      it was not created in time
  //   wrong_format   the name belongs to something else
  //   busy           this instance already has a connection point
  //   invalid_argument, stopped
  bool attachToConnectionPoint(const std::string& name,
                               std::uint32_t timeout = kAttachTimeout) noexcept {
    return guarded([&] {
      if (point_ != nullptr) return fail(leat::Errc::busy, kAttachedAlready);
      if (!leat::compat::ConnectionPoint::is_valid_name(name))
        return fail(leat::Errc::invalid_argument, kBadName);
      const leat::Deadline deadline = deadline_in(timeout);
      auto point = leat::compat::ConnectionPoint::attach(name, leat::Deadline::immediate());
      while (point.error() == leat::Errc::not_found) {
        if (isCommunicationStopped()) return fail(leat::Errc::stopped);
        if (deadline.passed()) return fail(leat::Errc::not_found, kNotThere);
        point = leat::compat::ConnectionPoint::attach(name, deadline.at_most_ns(kAttachPollNs));
      }
      if (!point) return fail(point.error());
      const std::lock_guard guard{stopping_};
      point_ = std::move(*point);
      return succeed();
    });
  }
  bool attachToConnectionPoint(const std::wstring& name,
                               std::uint32_t timeout = kAttachTimeout) noexcept {
    return guarded([&] {
      std::string narrow;
      for (const wchar_t c : name) narrow += c > 0 && c < 128 ? static_cast<char>(c) : '?';
      return attachToConnectionPoint(narrow, timeout);
    });
  }

  // Copies `size` bytes into the next free block; waits up to `timeout` ms for one.
  //   too_large          larger than a block
  //   timeout, stopped   nothing was written
  bool write(const void* data, std::size_t size, std::uint32_t timeout = INFINITE,
             const StopOn& stopOn = {}) noexcept {
    return guarded([&] {
      if (!has_point()) return false;
      if (data == nullptr && size != 0) return fail(leat::Errc::invalid_argument, kNullData);
      if (size > point_->block_size()) return fail(larger_than_block(), kTooLarge);
      auto lease = point_->lease_writer(is_single());
      if (!lease) return fail(lease.error());
      auto written = with_room(timeout, stopOn, [&](const leat::Deadline& deadline) {
        return lease->handle().publish(leat::Bytes{data, size}, deadline);
      });
      return written ? succeed() : fail(written.error());
    });
  }

  // Copies the next block to `data` and frees the block; waits up to `timeout` ms for one. See
  // lastReadSize().
  //   buffer_too_small   the block has more than `size` bytes, and stays where it is
  //   timeout, stopped   nothing was read
  bool read(void* data, std::size_t size, std::uint32_t timeout = INFINITE,
            const StopOn& stopOn = {}) noexcept {
    return guarded([&] {
      if (!has_point()) return false;
      if (data == nullptr && size != 0) return fail(leat::Errc::invalid_argument, kNullData);
      auto lease = point_->lease_reader(is_single(), spin());
      if (!lease) return fail(lease.error());
      leat::compat::Reader& reader = lease->handle();
      auto taken = with_block(reader, timeout, stopOn);
      if (!taken) return fail(taken.error());
      const leat::Bytes value = taken->record.value;
      if (value.size() > size) {
        (void)reader.member.requeue(*taken);
        return fail({leat::Errc::buffer_too_small, static_cast<std::int32_t>(value.size())},
                    kBufferTooSmall);
      }
      if (!value.empty()) std::memcpy(data, value.data(), value.size());
      last_.read_size = value.size();
      if (auto done = reader.member.acknowledge(*taken); !done) return fail(done.error());
      return succeed();
    });
  }

  // Returns a free block of the full block size to write in place: aligned to 16 bytes,
  // uninitialised. Null if there is none within `timeout` ms. Readers of later blocks wait for it:
  // release it soon.
  void* acquireBlock(BlockWriteDescriptor& descriptor, std::uint32_t timeout = INFINITE,
                     const StopOn& stopOn = {}) noexcept {
    const bool acquired = guarded([&] {
      if (!may_acquire(descriptor)) return false;
      auto lease = point_->lease_writer(is_single());
      if (!lease) return fail(descriptor, lease.error());
      auto claim = with_room(timeout, stopOn, [&](const leat::Deadline& deadline) {
        return lease->handle().claim(point_->block_size(), deadline);
      });
      if (!claim) return fail(descriptor, claim.error());
      descriptor.lease_ = std::move(*lease);
      descriptor.claim_.emplace(std::move(*claim));
      return hold(descriptor, descriptor.claim_->payload().data(), point_->block_size());
    });
    return acquired ? descriptor.result : nullptr;
  }

  // Returns the next block in place, read-only. Null if there is none within `timeout` ms.
  void* acquireBlock(BlockReadDescriptor& descriptor, std::uint32_t timeout = INFINITE,
                     const StopOn& stopOn = {}) noexcept {
    const bool acquired = guarded([&] {
      if (!may_acquire(descriptor)) return false;
      auto lease = point_->lease_reader(is_single(), spin());
      if (!lease) return fail(descriptor, lease.error());
      auto taken = with_block(lease->handle(), timeout, stopOn);
      if (!taken) return fail(descriptor, taken.error());
      descriptor.lease_ = std::move(*lease);
      descriptor.delivery_.emplace(*taken);
      // Not const, as in the article. The memory is mapped read-only: writing to it
      // ends the process.
      const leat::Bytes value = taken->record.value;
      return hold(descriptor, const_cast<std::byte*>(value.data()), value.size());
    });
    return acquired ? descriptor.result : nullptr;
  }

  // Publishes the whole block. Any thread of this process may call it, not only the one that
  // acquired the block.
  //   not_in_flight              the descriptor holds no block of this instance
  //   deleted, revoked, forked   the block is not delivered
  bool releaseLockedBlock(BlockWriteDescriptor& descriptor) noexcept {
    return guarded([&] {
      if (!holds(descriptor)) return fail(leat::Errc::not_in_flight, kNoBlock);
      auto committed = descriptor.claim_->commit();
      descriptor.claim_.reset();
      return let_go(descriptor, committed.error());
    });
  }
  // Frees the block for writers. Any thread of this process may call it.
  //   not_in_flight                         the descriptor holds no block of this instance
  //   lease_lost, closed, deleted, forked   another reader gets the block
  bool releaseLockedBlock(BlockReadDescriptor& descriptor) noexcept {
    return guarded([&] {
      if (!holds(descriptor)) return fail(leat::Errc::not_in_flight, kNoBlock);
      auto acknowledged = descriptor.lease_.handle().member.acknowledge(*descriptor.delivery_);
      descriptor.delivery_.reset();
      return let_go(descriptor, acknowledged.error());
    });
  }

  // Ends all waits of this instance at once, including infinite ones. Until resumed, calls do what
  // they can without waiting, or fail with `stopped`. Any thread.
  void requestStopCommunications() noexcept {
    const std::lock_guard guard{stopping_};
    stopped_ = true;  // seq_cst; pairs with Waiting: a wait that is missed below sees this.
    if (is_attached()) point_->stop_waits();
  }
  void requestResumeCommunications() noexcept {
    const std::lock_guard guard{stopping_};
    if (is_attached()) {
      // First let all waits end that were stopped.
      while (stopped_ && waiting_ != 0) std::this_thread::sleep_for(std::chrono::microseconds{50});
      point_->resume_waits();
    }
    stopped_ = false;
  }
  bool isCommunicationStopped() const noexcept { return stopped_; }

  // Promises that only one thread uses this instance: saves an atomic swap per call.
  // relaxed: see is_single().
  void doSingleThread(bool single) noexcept { single_.store(single, std::memory_order_relaxed); }

  // Sets the number of expansions, for all instances. With preAllocate: false (`not_allowed`), and
  // nothing changes.
  //   invalid_argument   0, or more than the connection point can hold
  bool setMaxExpansionsCount(std::uint32_t count) noexcept {
    return guarded([&] {
      if (!has_point()) return false;
      if (point_->settings().pre_allocate != 0) return fail(leat::Errc::not_allowed);
      const auto changed = point_->set_max_expansions(count);
      return changed ? succeed() : fail(changed.error(), kBadExpansions);
    });
  }

  // Sets how long a read spins before it sleeps, in units of about 1.7 us: the default is 20 us, 0
  // is none. The second parameter has no effect: there is no table of expansions to lock.
  void setMaxSpinLocksCount(std::uint32_t blockAccessSpinLock = 12,
                            std::uint32_t expansionAccessSpinLock = 40) noexcept {
    (void)expansionAccessSpinLock;
    spins_.store(blockAccessSpinLock, std::memory_order_relaxed);  // relaxed: see is_single().
  }

  // The connection point's current settings; zeros without one.
  leat::compat::BlockSettings settings() const noexcept {
    leat::compat::BlockSettings settings{.max_expansions = 0};
    (void)guarded([&] {
      if (!has_point()) return false;
      settings = point_->settings();
      return succeed();
    });
    return settings;
  }

  // The error of the calling thread's last call on any instance, and its text.
  static leat::Error lastError() noexcept { return last_.error; }
  static std::string lastErrorText() {
    return last_.text != nullptr ? last_.text : leat::describe(last_.error);
  }
  // Number of bytes that the calling thread's last successful read() copied.
  static std::size_t lastReadSize() noexcept { return last_.read_size; }

 private:
  static constexpr std::int64_t kAttachPollNs = 20'000'000;
  static constexpr std::int64_t kWritePollNs = 2'000'000;
  static constexpr std::int64_t kSpinNs = 20'000 / 12;  // Of one unit.

  static constexpr char kAttachedAlready[] =
      "this instance has a connection point already: use another instance";
  static constexpr char kNotAttached[] =
      "this instance has no connection point: create or attach first";
  static constexpr char kBadSettings[] =
      "block size (at most 128 MiB), block count and expansions must be at least 1, all blocks "
      "together at most 128 GiB";
  static constexpr char kBadExpansions[] =
      "expansions must be at least 1, and no more than the connection point can hold";
  static constexpr char kBadName[] =
      "the name of a connection point has 1 to 180 letters, digits, dots, dashes and underscores";
  static constexpr char kTaken[] = "a connection point of that name exists already: attach to it";
  static constexpr char kNotThere[] = "no connection point of that name appeared in time";
  static constexpr char kNullData[] = "data is null";
  static constexpr char kTooLarge[] = "the data is larger than a block";
  static constexpr char kBufferTooSmall[] =
      "the next block holds more than the buffer: read it with a larger one";
  static constexpr char kHasBlock[] = "the descriptor holds a block: release it first";
  static constexpr char kNoBlock[] = "the descriptor holds no block of this instance";

  static inline thread_local leat::compat::LastCall last_;

  static bool succeed() noexcept {
    last_.error = {};
    last_.text = nullptr;
    return true;
  }
  static bool fail(leat::Error error, const char* text = nullptr) noexcept {
    last_.error = error;
    last_.text = text;
    return false;
  }
  static bool fail(leat::Errc code, const char* text = nullptr) noexcept {
    return fail(leat::Error{code, 0}, text);
  }
  static bool fail(leat::compat::BlockDescriptor& descriptor, leat::Error error) noexcept {
    descriptor.status = leat::compat::BlockStatus::failed;
    descriptor.error = error;
    return fail(error);
  }

  // The only exception is bad_alloc, when handles are made.
  template <class Call>
  static bool guarded(Call&& call) noexcept {
    try {
      return call();
    } catch (const std::exception&) {
      return fail(leat::Errc::no_memory, "out of memory");
    }
  }

  leat::Error larger_than_block() const noexcept {
    return {leat::Errc::too_large, static_cast<std::int32_t>(point_->block_size())};
  }
  static leat::Deadline deadline_in(std::uint32_t timeout) noexcept {
    if (timeout == INFINITE) return leat::Deadline::never();
    return std::chrono::milliseconds{timeout};
  }
  // relaxed, both: they only choose between ways that are all correct.
  bool is_single() const noexcept { return single_.load(std::memory_order_relaxed); }
  std::chrono::nanoseconds spin() const noexcept {
    return std::chrono::nanoseconds{kSpinNs * spins_.load(std::memory_order_relaxed)};
  }

  // A thread that may be waiting. seq_cst: counted before stopped_ is checked once more.
  class Waiting {
   public:
    explicit Waiting(CSimpleIPC& ipc) noexcept : count_{ipc.waiting_} { ++count_; }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    ~Waiting() { --count_; }

   private:
    std::atomic<std::uint32_t>& count_;
  };

  // Returns the next block; waits until there is one.
  leat::Result<leat::Delivery> with_block(leat::compat::Reader& reader, std::uint32_t timeout,
                                          const StopOn& stop) {
    auto taken = reader.take();
    if (taken || taken.error().code != leat::Errc::timeout || timeout == 0) return taken;
    if (isCommunicationStopped()) return leat::Errc::stopped;
    const leat::Deadline deadline = deadline_in(timeout);
    const Waiting waiting{*this};
    while (true) {
      if (isCommunicationStopped()) return leat::Errc::stopped;
      auto ready = stop.fd() >= 0 ? reader.member.wait(deadline, stop.fd())
                                  : reader.member.wait(deadline, stop.token());
      if (!ready) return ready.error();
      taken = reader.take();
      if (taken || taken.error().code != leat::Errc::timeout) return taken;
    }
  }

  // Calls claim(deadline) until it gets room. Publishers that wait for room recheck
  // every 2 ms anyway.
  template <class Claim>
  auto with_room(std::uint32_t timeout, const StopOn& stop, Claim&& claim)
      -> decltype(claim(leat::Deadline::never())) {
    const auto is_full = [](leat::Error error) {
      return error == leat::Errc::full || error == leat::Errc::timeout ||
             error == leat::Errc::would_deadlock;
    };
    auto claimed = claim(leat::Deadline::immediate());
    if (claimed || !is_full(claimed.error())) return claimed;
    if (isCommunicationStopped()) return leat::Errc::stopped;
    const leat::Deadline deadline = deadline_in(timeout);
    const Waiting waiting{*this};
    while (true) {
      if (isCommunicationStopped() || stop.is_requested()) return leat::Errc::stopped;
      if (deadline.passed()) return leat::Errc::timeout;
      claimed = claim(deadline.at_most_ns(kWritePollNs));
      if (claimed || !is_full(claimed.error())) return claimed;
      // Only a member of this thread holds the room, but another thread may release its block.
      if (claimed.error() == leat::Errc::would_deadlock)
        std::this_thread::sleep_for(std::chrono::nanoseconds{kWritePollNs});
    }
  }

  // Whether the connection point can be used. A forked child must not even lock what its parent's threads may have
  // locked during the fork, and it has no thread that waits.
  bool is_attached() const noexcept { return point_ != nullptr && !point_->is_inherited(); }
  // The same for a call, which fails if it is false.
  bool has_point() const noexcept {
    if (is_attached()) return true;
    if (point_ == nullptr) return fail(leat::Errc::not_found, kNotAttached);
    return fail(leat::Errc::forked);
  }

  template <class Descriptor>
  bool may_acquire(Descriptor& descriptor) noexcept {
    // A held block stays held.
    if (descriptor.status == leat::compat::BlockStatus::acquired) {
      return fail(leat::Errc::busy, kHasBlock);
    }
    if (has_point()) return true;
    descriptor.status = leat::compat::BlockStatus::failed;
    descriptor.error = last_.error;
    return false;
  }
  template <class Descriptor>
  bool hold(Descriptor& descriptor, void* block, std::size_t size) noexcept {
    descriptor.point_ = point_.get();
    descriptor.result = block;
    descriptor.size = size;
    descriptor.status = leat::compat::BlockStatus::acquired;
    descriptor.error = {};
    return succeed();
  }
  template <class Descriptor>
  bool holds(const Descriptor& descriptor) const noexcept {
    return descriptor.status == leat::compat::BlockStatus::acquired && point_ != nullptr &&
           descriptor.point_ == point_.get();
  }
  template <class Descriptor>
  static bool let_go(Descriptor& descriptor, leat::Error error) noexcept {
    descriptor.lease_ = {};
    descriptor.result = nullptr;
    descriptor.size = 0;
    descriptor.error = error;
    const bool ok = error.code == leat::Errc::ok;
    descriptor.status = ok ? leat::compat::BlockStatus::released : leat::compat::BlockStatus::lost;
    return ok ? succeed() : fail(error);
  }

  std::unique_ptr<leat::compat::ConnectionPoint> point_;  // Null until created or attached.
  // Serializes stop and resume, and guards point_ against them.
  leat::detail::ForkableMutex stopping_;
  std::atomic<bool> stopped_ = false;
  std::atomic<bool> single_ = false;
  std::atomic<std::uint32_t> spins_ = 12;
  // On its own cache line: whoever waits changes it, and every call reads what is above.
  alignas(64) std::atomic<std::uint32_t> waiting_ = 0;
};
