// Implementation of one CSimpleIPC: the topic of the blocks, the group of its
// readers, the settings.
//
//     auto point = leat::compat::ConnectionPoint::create({.block_size = 8, .block_count = 256});
//     auto lease = (*point)->lease_writer(false);
//     if (lease) lease->handle().publish("x");
//
// The blocks are the records of a topic; group `readers` gives each to one reader. The limit of
// outstanding blocks is counted in records (PublisherOptions::offset_limit), not in bytes. The
// settings are the last record of a second, small topic, so that the name suffices to find them and
// they can change. Both topics are deleted when the last process closes them.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "leat/base/crash_point.hpp"
#include "leat/base/replace.hpp"
#include "leat/compat/gaps.hpp"
#include "leat/leat.hpp"
#include "leat/log/directory.hpp"
#include "leat/os/event.hpp"
#include "leat/os/fork.hpp"
#include "leat/os/fork_state.hpp"

namespace leat::inline v0::compat {

// The publishers, or the members, of one instance: one for each call that runs at the same time.
// Any thread may lease. A thread gets the handle that it had last, so that threads that share an
// instance do not contend: a lease costs one swap of a word that only this thread uses.
template <class Handle>
class HandlePool {
  struct alignas(64) Slot {
    explicit Slot(Handle&& made) : handle{std::move(made)} {}
    Handle handle;
    std::atomic<bool> leased = true;
  };

 public:
  // Maximum number of simultaneous calls, including blocks held in place.
  static constexpr std::size_t kHandles = 255;

  // The right to use one handle, until destroyed. The pool must outlive it.
  class Lease {
   public:
    Lease() noexcept = default;
    explicit Lease(Slot& slot) noexcept : slot_{&slot} {}
    Lease(Lease&& other) noexcept : slot_{std::exchange(other.slot_, nullptr)} {}
    Lease& operator=(Lease&& other) noexcept { return detail::replace(*this, other); }
    ~Lease() {
      // release; pairs with the acquire in try_lease(): the next user sees the handle's state.
      if (slot_ != nullptr) slot_->leased.store(false, std::memory_order_release);
    }
    Handle& handle() const noexcept { return slot_->handle; }

   private:
    Slot* slot_ = nullptr;  // Null once moved from.
  };

  HandlePool() = default;
  HandlePool(const HandlePool&) = delete;
  HandlePool& operator=(const HandlePool&) = delete;
  ~HandlePool() {
    for (auto& slot : slots_) delete slot.load(std::memory_order_relaxed);  // No users are left.
  }

  // Leases an unused handle; calls `make` for a new one if there is none. `single`: only this
  // thread leases.
  //   too_many   all are in use; otherwise the errors of `make`
  template <class Make>
  Result<Lease> lease(bool single, Make&& make) {
    static thread_local std::size_t last = 0;  // A hint; shared by all pools.
    if (Slot* slot = slots_[last].load(std::memory_order_acquire); try_lease(slot, single))
      return Lease{*slot};
    const std::size_t made = made_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < made; ++i) {
      Slot* slot = slots_[i].load(std::memory_order_acquire);
      if (!try_lease(slot, single)) continue;
      last = i;
      return Lease{*slot};
    }
    const std::lock_guard guard{making_};
    const std::size_t next = made_.load(std::memory_order_relaxed);  // Only changed under the lock.
    if (next == kHandles) return Errc::too_many;
    auto handle = make();
    if (!handle) return handle.error();
    auto slot = std::make_unique<Slot>(std::move(*handle));
    // seq_cst; pairs with for_each(): either it sees the handle, or the thread that made the handle
    // sees earlier stores of for_each()'s caller.
    slots_[next].store(slot.get());
    made_.store(next + 1);
    last = next;
    return Lease{*slot.release()};
  }

  // Calls on_handle for every handle, including those in use: only for operations that any
  // thread may perform.
  template <class OnHandle>
  void for_each(OnHandle&& on_handle) {
    const std::size_t made = made_.load();
    for (std::size_t i = 0; i < made; ++i) on_handle(slots_[i].load()->handle);
  }

 private:
  static bool try_lease(Slot* slot, bool single) noexcept {
    // relaxed: only a check, which leaves the cache line of a handle in use where it is.
    if (slot == nullptr || slot->leased.load(std::memory_order_relaxed)) return false;
    if (!single) return !slot->leased.exchange(true, std::memory_order_acquire);
    slot->leased.store(true, std::memory_order_relaxed);  // No other thread leases.
    return true;
  }

  std::array<std::atomic<Slot*>, kHandles> slots_{};  // Each is set once.
  std::atomic<std::size_t> made_ = 0;
  std::mutex making_;
};

// A connection point's settings, as stored in its settings topic.
struct BlockSettings {
  std::uint32_t block_size = 0;              // bytes
  std::uint32_t block_count = 0;             // blocks per expansion
  std::uint32_t max_expansions = 1;          // including the first
  std::uint32_t min_expansion_distance = 0;  // free blocks at which the next expansion is added
  std::uint32_t pre_allocate = 0;            // 1: max_expansions is fixed
  friend bool operator==(const BlockSettings&, const BlockSettings&) = default;

  static constexpr std::uint32_t kMaxBlockSize = 128U << 20;
  static constexpr std::uint64_t kMaxBytes = 128ULL << 30;

  // Maximum number of outstanding blocks: written and not released by a reader.
  std::uint64_t limit() const noexcept { return std::uint64_t{block_count} * max_expansions; }
  // Bytes that a block takes in the topic.
  std::uint64_t room() const noexcept {
    return detail::granules_for(block_size) * detail::kGranule;
  }
  bool is_valid() const noexcept {
    return block_size != 0 && block_size <= kMaxBlockSize && block_count != 0 &&
           max_expansions != 0 && limit() <= kMaxBytes / room();
  }
};
static_assert(std::is_trivially_copyable_v<BlockSettings>);

// What a settings topic has: the settings, and of which blocks. While a connection point is closed, its name may have
// the blocks of one creation and the settings of another.
struct SettingsRecord {
  BlockSettings settings;
  TopicId blocks;
};
static_assert(std::is_trivially_copyable_v<SettingsRecord>);

// A member that receives one block at a time: one claimed ahead would wait for the
// thread's next read.
struct Reader {
  explicit Reader(Member&& made) : member{std::move(made)} { taken.reserve(1); }

  // Returns the next block if there is one, otherwise `timeout`.
  Result<Delivery> take() {
    taken.clear();
    auto count = member.receive(taken, 1, Deadline::immediate());
    if (!count) return count.error() == Errc::stopped ? Error{Errc::timeout} : count.error();
    return taken.front();
  }

  Member member;
  std::vector<Delivery> taken;
};

// One instance's part of a connection point. Any thread; not to be used in a forked child, which may inherit the
// mutexes locked.
class ConnectionPoint {
 public:
  static bool is_valid_name(const std::string& name) noexcept {
    return name.size() <= 180 && detail::is_valid_topic_name(name);  // ".settings" is appended.
  }

  // Creates a connection point; an empty name gives it a unique one.
  //   exists, no_space, permission
  static Result<std::unique_ptr<ConnectionPoint>> create(const BlockSettings& settings,
                                                         std::string name) {
    if (name.empty()) {
      char generated[32];
      std::snprintf(generated, sizeof(generated), "ipc-%016llx",
                    static_cast<unsigned long long>(detail::make_random()));
      name = generated;
    }
    // The topic of the blocks last: a process that finds it also finds the settings.
    auto settings_topic = create_settings(name);
    if (settings_topic.error() == Errc::exists &&
        Topic::open(name, kCreatorsPatience).error() == Errc::not_found) {
      // Its creator died before it created the blocks.
      (void)Topic::delete_topic(settings_name(name));
      settings_topic = create_settings(name);
    }
    if (!settings_topic) return settings_topic.error();
    TopicOptions options = options_for(settings);
    options.id = detail::make_topic_id();
    if (auto done = publish_settings(*settings_topic, {settings, options.id}); !done)
      return done.error();
    auto topic = Topic::create(name, options);
    if (!topic) return topic.error();
    if (auto grown = topic->set_max_capacity(topic->max_capacity_limit()); !grown)
      return grown.error();
    return assemble(std::move(*topic), std::move(*settings_topic));
  }

  // Attaches to a connection point; waits for it until the deadline.
  //   not_found      it was not created in time
  //   wrong_format   the name belongs to something else
  static Result<std::unique_ptr<ConnectionPoint>> attach(const std::string& name,
                                                         const Deadline& deadline) {
    // The settings first: they are there for as long as the blocks are.
    auto settings_topic = Topic::open(settings_name(name), deadline);
    if (settings_topic.error() == Errc::not_found && Topic::open(name)) {
      settings_topic = Topic::open(settings_name(name));  // They may just have been made.
      if (settings_topic.error() == Errc::not_found) return Errc::wrong_format;
    }
    if (!settings_topic) return settings_topic.error();
    // So that this process counts as one that used them, which deletes them if it is the last.
    if (auto used = settings_topic->publisher(); !used) return used.error();
    LEAT_CRASH_POINT("simple_ipc:settings");
    auto topic = Topic::open(name);
    if (!topic) return topic.error();
    LEAT_CRASH_POINT("simple_ipc:blocks");
    return assemble(std::move(*topic), std::move(*settings_topic));
  }

  bool is_inherited() const noexcept { return fork_generation_ != detail::fork_generation(); }
  const std::string& name() const noexcept { return topic_.name(); }
  std::uint32_t block_size() const noexcept { return block_size_; }

  // The current settings.
  BlockSettings settings() {
    const std::lock_guard guard{following_};
    follow();
    return settings_;
  }
  // Changes the number of expansions for all instances.
  //   invalid_argument   the topic has no room for so many
  Result<void> set_max_expansions(std::uint32_t count) {
    BlockSettings changed = settings();
    changed.max_expansions = count;
    if (!changed.is_valid() || changed.limit() > most_blocks()) return Errc::invalid_argument;
    if (auto done = publish_settings(settings_topic_, {changed, topic_.id()}); !done)
      return done.error();
    topic_.recheck_offset_limits();  // Including publishers that are below the limit they know.
    return {};
  }

  Result<HandlePool<Publisher>::Lease> lease_writer(bool single) {
    return writers_.lease(single, [&] {
      return topic_.publisher({.offset_limit = [this] { return offset_limit(); }});
    });
  }
  Result<HandlePool<Reader>::Lease> lease_reader(bool single, std::chrono::nanoseconds spin) {
    auto lease = readers_.lease(single, [&]() -> Result<Reader> {
      auto member = group_.join();
      if (!member) return member.error();
      return Reader{std::move(*member)};
    });
    if (lease) lease->handle().member.set_spin(spin);
    return lease;
  }
  // Ends reads that wait; later ones do not wait until resume_waits().
  void stop_waits() {
    readers_.for_each([](Reader& reader) { reader.member.stop_waits(); });
  }
  void resume_waits() {
    readers_.for_each([](Reader& reader) { reader.member.resume_waits(); });
  }

 private:
  static constexpr std::uint64_t kSettingsBytes = 4096;  // Of a segment; there are two.
  static constexpr std::chrono::milliseconds kCreatorsPatience{500};
  // For all instances: a member and a publisher for each thread.
  static constexpr std::uint32_t kParticipants = 1024;

  ConnectionPoint(Topic&& topic, Group&& group, Topic&& settings_topic, Subscriber&& subscriber)
      : settings_topic_{std::move(settings_topic)},
        topic_{std::move(topic)},
        group_{std::move(group)},
        subscriber_{std::move(subscriber)} {}

  static std::string settings_name(const std::string& name) { return name + ".settings"; }
  static Result<Topic> create_settings(const std::string& name) {
    return Topic::create(settings_name(name), {.capacity_bytes = 2 * kSettingsBytes,
                                               .segment_bytes = kSettingsBytes,
                                               .policy = Policy::overwrite,
                                               .delete_when_unused = true,
                                               .participants = kParticipants});
  }
  static Result<void> publish_settings(const Topic& settings_topic,
                                       const SettingsRecord& settings) {
    auto publisher = settings_topic.publisher();
    if (!publisher) return publisher.error();
    auto done = publisher->publish(Bytes{&settings, sizeof(settings)});
    if (!done) return done.error();
    return {};
  }

  // Memory for one expansion, and more as needed. The topic itself may grow as far as possible,
  // because the limit counts blocks: a segment that readers hold costs memory, not blocks.
  static TopicOptions options_for(const BlockSettings& settings) {
    const std::uint64_t room = settings.room();
    // Half an expansion per segment, so that it seldom grows; but a limited number of segments.
    const std::uint64_t wanted =
        std::max<std::uint64_t>(settings.block_count / 2, settings.limit() / 512) * room;
    const std::uint64_t segment = detail::Geometry::round_up(
        std::max(2 * room, std::min(wanted, kLargestSegment)), detail::kPage);
    const std::uint64_t first = settings.block_count / (segment / room) + 2;
    return {
        .capacity_bytes = first * segment,
        .segment_bytes = segment,
        .policy = Policy::grow,
        .max_capacity_bytes = first * segment,
        .grow_below_bytes = std::min(settings.min_expansion_distance, settings.block_count) * room,
        .delete_when_unused = true,
        .participants = kParticipants};
  }

  static Result<std::unique_ptr<ConnectionPoint>> assemble(Topic&& topic, Topic&& settings_topic) {
    // Makes this process count as one that used the topic, so that it deletes the topic if
    // it is the last.
    if (auto used = topic.publisher(); !used) return used.error();
    auto subscriber = settings_topic.subscriber({.from = From::beginning, .gating = false});
    if (!subscriber) return subscriber.error();
    auto group = topic.group(
        kGroup,
        {.from = From::beginning, .members = HandlePool<Reader>::kHandles, .in_flight = kHolds});
    if (!group) return group.error();
    std::unique_ptr<ConnectionPoint> point{new ConnectionPoint{
        std::move(topic), std::move(*group), std::move(settings_topic), std::move(*subscriber)}};
    const BlockSettings settings = point->settings();
    if (!settings.is_valid()) return Errc::not_found;  // They are of another creation.
    point->block_size_ = settings.block_size;
    return point;
  }

  // Number of blocks that the topic has room for. The first and last segments may be partly unused.
  std::uint64_t most_blocks() const {
    const std::uint64_t segment = topic_.segment_bytes();
    const std::uint64_t blocks = segment / BlockSettings{.block_size = block_size_}.room();
    return (topic_.max_capacity_limit() / segment - 2) * blocks;
  }

  // Reads settings that were published since the last call. following_ must be locked.
  void follow() {
    (void)subscriber_.poll(1000, [this](const Record& record) {
      SettingsRecord received;
      if (record.value.size() != sizeof(received)) return;
      std::memcpy(&received, record.value.data(), sizeof(received));
      if (received.blocks == topic_.id() && received.settings.is_valid())
        settings_ = received.settings;
    });
  }

  // The publishers' offset limit: the first offset that has no room. Called by publishers that have
  // reached the last result.
  std::uint64_t offset_limit() {
    const std::uint64_t released = group_.released();
    const std::uint64_t position = group_.position();  // Later: gaps before it are released.
    const std::lock_guard guard{following_};
    follow();
    const auto until = [&] { return released + settings_.limit() + gaps_.count_from(position); };
    // Claims that were given up are not blocks. They are looked for only when there is no other
    // room: reading the records of other writers costs more than counting.
    if (until() <= last_until_) gaps_.check(topic_);
    return last_until_ = until();
  }

  // For each member: the block that it has, and those that it returned and others have.
  static constexpr std::uint32_t kHolds = 16;
  static constexpr char kGroup[] = "readers";
  static constexpr std::uint64_t kLargestSegment = 256 << 20;  // bytes; a topic may have 1024

  Topic settings_topic_;  // Before the blocks, so that it is there for as long as they are.
  Topic topic_;
  Group group_;
  std::uint32_t block_size_ = 0;  // Constant after assemble().
  const std::uint32_t fork_generation_ = detail::fork_generation();

  // Protects the four below. On its own cache line: whoever writes locks it, and everybody reads what is above.
  alignas(64) std::mutex following_;
  Subscriber subscriber_;
  BlockSettings settings_{.max_expansions = 0};
  Gaps gaps_;
  std::uint64_t last_until_ = 0;

  HandlePool<Publisher> writers_;
  HandlePool<Reader> readers_;
};

}  // namespace leat::inline v0::compat
