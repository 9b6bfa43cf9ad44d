// The implementation of Member (leat/member.hpp). member_place.hpp lists its parts.
//
// The functions are in member_delivery.hpp (handing out records) and member_session.hpp (joining and
// leaving, settling records, waiting). docs/internals/groups.md explains why nothing is lost.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "leat/group/dead_letters.hpp"
#include "leat/group/other_members.hpp"
#include "leat/group/record_taker.hpp"
#include "leat/group/stored_fetch.hpp"
#include "leat/log/waiter.hpp"
#include "leat/member.hpp"

namespace leat::inline v0::detail {

// Outcome of a search for a record; if it failed, see error_. `on_disk`: the next one is there, and only
// memory is read. Not a Result: this is the hot path.
enum class Got : std::uint8_t { one, none, on_disk, failed };

class MemberCore final : public Waiter {
 public:
  MemberCore(Topic topic, std::shared_ptr<GroupView> group, Participant participant,
             const std::byte* records, const MemberOptions& options);
  // Leaves the group. Deletes this object, or lets the poll() that runs do that when it returns.
  void destroy() noexcept;

  // Takes a vacant seat, or a dead member's.
  //   too_many, invalid_argument
  Result<void> take_seat(const std::string& name);

  // The functions of Member, which calls these.
  Result<Delivery> receive(const Deadline& deadline, const std::stop_token& stop);
  Result<std::size_t> receive(std::vector<Delivery>& into, std::size_t limit,
                              const Deadline& deadline, const std::stop_token& stop);
  Result<std::size_t> receive_copy(std::span<std::byte> buffer, const Deadline& deadline,
                                   const std::stop_token& stop);
  Result<std::size_t> poll(std::size_t limit, void* context,
                           void (*on_delivery)(void* context, const Delivery&));
  Result<void> acknowledge(const Delivery& delivery);
  Result<std::size_t> acknowledge(std::span<const Delivery> deliveries);
  Result<std::size_t> acknowledge_up_to(const Delivery& delivery);
  Result<std::size_t> acknowledge_all();
  Result<void> requeue(const Delivery& delivery, std::chrono::nanoseconds delay);
  std::size_t in_flight() const noexcept { return entries_.in_flight(); }
  void on_event(Callback<void(const Event&)> on_event) { on_event_ = std::move(on_event); }
  void read_memory_only(bool is_on) noexcept {
    taker_.read_memory_only(is_on);
    stored_.read_memory_only(is_on);
  }
  bool next_is_on_disk() const noexcept {
    return stored_.next_is_on_disk() || taker_.next_is_on_disk();
  }
  void set_spin(std::chrono::nanoseconds spin) noexcept { spin_ns_ = spin.count(); }

 private:
  ~MemberCore() { leave(); }

  // Number of acknowledgements between two wake-ups of publishers.
  static constexpr std::uint64_t kWakeEvery = 64;
  static constexpr Error kNoMemory{Errc::no_memory};

  GroupView& group() const noexcept { return place_.group; }
  const GroupGeometry& geometry() const noexcept { return place_.geometry(); }
  bool is_closed() const noexcept { return group().is_closed(); }

  // Joining and leaving.
  bool try_seat(std::uint32_t index, std::uint64_t identity) noexcept;
  void introduce(const std::string& name) noexcept;
  void make_tables();
  void leave() noexcept;
  void vacate() noexcept;
  Errc check() noexcept;
  Errc know_of_closing() noexcept;
  Got fail(Error error) noexcept;
  Got fail(Errc code) noexcept { return fail(Error{code, 0}); }
  Error what_failed() noexcept;

  // Handing out.
  Got take_now(Delivery& delivery);
  Result<std::size_t> take_some(std::vector<Delivery>& into, std::size_t limit);
  Got hand_out(Delivery& delivery);
  bool hand_over(InFlightRef ref, std::uint64_t& state, bool& is_dead_letter) noexcept;
  std::uint64_t hand_over_again(std::uint64_t ready, bool& is_dead_letter) const noexcept;
  Got get_ready(std::size_t want, InFlightPhase phase) noexcept;
  Found retake(std::size_t want) noexcept;
  Found take_new(std::size_t want, InFlightPhase phase) noexcept;
  Got deliver(const ScannedRecord& found, std::uint64_t state, InFlightRef ref, Delivery& delivery,
              bool is_dead_letter);
  Got copy_payload(InFlightRef ref, std::uint64_t state, Bytes& payload,
                   bool is_dead_letter) noexcept;
  Got deliver_returned(std::uint64_t state, InFlightRef ref, bool is_dead_letter,
                       Delivery& delivery);
  Got deliver_stored(const ReadyRecord& next, std::uint64_t state, bool is_dead_letter,
                     Delivery& delivery);
  Got not_stored(GapReason reason, const Delivery& delivery);
  Got leave_on_disk(InFlightRef ref, std::uint64_t state, bool is_dead_letter) noexcept;
  Got put_back(InFlightRef ref, std::uint64_t state, bool is_counted) noexcept;
  Got put_back(InFlightRef ref, std::uint64_t state, bool is_counted, Error error) noexcept;
  void report_events();
  Got dead_letter(const Delivery& delivery);
  bool is_overtaking() noexcept;
  Got nothing_now();
  class InPoll;
  class InCallback;
  static bool make_room(std::vector<Delivery>& into) noexcept;

  // Settling records.
  OwnRecord* find_own(const Delivery& delivery) noexcept;
  bool is_in_hand(const Delivery& delivery) noexcept;
  Errc why_not_in_flight(const Delivery& delivery) noexcept;
  Errc settle(const Delivery& delivery, InFlightPhase to) noexcept;
  Errc settle(const Delivery& delivery, InFlightPhase to, bool& may_make_room) noexcept;
  bool delay_entry(Delivery& delivery, std::chrono::nanoseconds delay) noexcept;
  Result<std::size_t> acknowledge_until(std::uint64_t last);
  void forget_lost_leases() noexcept;
  void wake_publishers() noexcept { MappedTopic::wake(shared().header().space_wake); }

  // Waiting, and looking after other members.
  bool is_ready() noexcept override;
  Result<std::int64_t> housekeep() override;
  Error housekeep_if_due();
  std::int64_t next_event() noexcept;

  Topic topic_;
  std::shared_ptr<GroupView> view_;
  MemberPlace place_;
  SegmentPins pins_{place_};
  KeyOrder keys_{place_};
  InFlightTable entries_{place_, keys_};
  Lease lease_{place_};
  ReadyRecords ready_{place_, entries_};
  Redelivery redelivery_{place_, entries_, keys_, lease_, ready_};
  RecordTaker taker_{place_, pins_, entries_, keys_, lease_, ready_, redelivery_};
  OtherMembers others_{place_, entries_, keys_, redelivery_};
  DeadLetterTopic dead_letters_{topic_, place_.topic, group()};
  StoredFetch stored_{place_};
  FoundInBatch found_in_batch_;  // The last retaken record of a batch.
  Callback<void(const Event&)> on_event_;

  bool is_seated_ = false;
  bool is_destroyed_ = false;  // destroy() was called.
  std::uint32_t polls_ = 0;    // Calls of poll() that run, one in the callback of another.
  Error error_;                // Error of the last call.
  std::uint64_t takes_ = 0;
  std::size_t new_due_ = 0;  // New records to take before returned ones are retaken.
  std::uint64_t order_ = 0;  // OwnRecord::order of the last record handed out.
  std::uint64_t acknowledged_ = 0;
};

}  // namespace leat::inline v0::detail
