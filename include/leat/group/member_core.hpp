// A member at work: what a Member of leat/member.hpp stands for.
//
// docs/internals/groups.md says why nothing is lost. The functions are in member_take.hpp (claiming),
// member_hand.hpp (handing out), member_keys.hpp, member_retake.hpp (what came back), and
// member_impl.hpp (the rest).
#pragma once

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "leat/group/claims.hpp"
#include "leat/group/fixed_map.hpp"
#include "leat/group/walker.hpp"
#include "leat/log/waiter.hpp"
#include "leat/member.hpp"

namespace leat::inline v0::detail {

// What a look for a record came to; if it failed, error_ says why. Not a Result: this is the hot path.
enum class Got : std::uint8_t { one, none, failed };

class MemberCore final : public Waiter {
 public:
  MemberCore(Topic topic, std::shared_ptr<GroupView> group)
      : Waiter{true}, topic_{std::move(topic)}, group_{std::move(group)} {}
  ~MemberCore() { leave(); }

  // As those of Member, which calls them.
  Result<Delivery> receive(const Deadline& deadline, const std::stop_token& stop);
  Result<std::size_t> receive(std::vector<Delivery>& into, std::size_t limit,
                              const Deadline& deadline, const std::stop_token& stop);
  Result<std::size_t> receive_copy(std::span<std::byte> buffer, const Deadline& deadline,
                                   const std::stop_token& stop);
  Result<void> acknowledge(const Delivery& delivery);
  Result<std::size_t> acknowledge_up_to(const Delivery& delivery);
  Result<std::size_t> acknowledge_all();
  Result<void> give_back(const Delivery& delivery, std::chrono::nanoseconds delay);
  std::size_t in_flight() const noexcept { return in_flight_; }
  void set_spin(std::chrono::nanoseconds spin) noexcept { spin_ns_ = spin.count(); }

  // Records by and by, for a callback: the steps of Member::poll().
  Errc begin_poll();
  Got poll_next(Delivery& delivery, std::size_t count, std::size_t limit);
  // The callback is done with it. False: in a child of the callback's.
  bool settle_polled(const Delivery& delivery) noexcept;
  void give_back_polled(const Delivery& delivery) noexcept;
  Error end_poll(std::size_t count, Got last);

 private:
  friend class leat::Group;
  static constexpr std::size_t kAhead = 64;        // Records claimed for later calls of receive().
  static constexpr std::size_t kAtOnce = 256;      // Records claimed in one step.
  static constexpr std::uint64_t kWakeEvery = 64;  // Acknowledgements.
  static constexpr std::int64_t kOthersDie = 4'000'000;  // ns; how often the others are looked at.
  static constexpr int kManyLooks = 1000;
  static constexpr std::size_t kMaxFound = kAtOnce;  // Records that came back, in one look.
  static constexpr std::size_t kMaxParkRun = 1024;
  static constexpr std::size_t kEnoughReturned = 256;
  static constexpr Error kNoMemory{Errc::no_space, ENOMEM};
  // Where a hold is, in one word.
  static constexpr std::uint64_t place_of(std::uint32_t row, std::uint32_t index) noexcept {
    return std::uint64_t{row} << 32 | index;
  }
  static constexpr std::uint32_t row_of(std::uint64_t place) noexcept {
    return static_cast<std::uint32_t>(place >> 32);
  }
  static constexpr std::uint32_t index_of(std::uint64_t place) noexcept {
    return static_cast<std::uint32_t>(place);
  }

  // One partition.
  struct Lane {
    Lane(SharedTopic& topic, std::uint32_t partition, const std::byte* records) noexcept
        : walker{topic, partition, records} {}
    Walker walker;
    HoleWatch hole;
  };
  // What a member remembers of a record that it claimed or took, and has not settled.
  struct Mine {
    std::uint64_t state = 0;
    std::uint64_t order = 0;  // When it was handed out; 0: it is not in the user's hands.
    std::uint64_t key = 0;    // As in the hold.
  };
  // A hold in the own row, by index.
  enum class Own : std::uint8_t {
    free,  // in free_
    mine,  // ready or held by this member
    lost,  // others have it or had it
  };
  struct OwnHold {
    Mine mine;
    Own whose = Own::free;
  };
  // A delivery that was taken away, for whoever still asks about it.
  struct LostLease {
    std::uint32_t row = 0, hold = 0;
    std::uint64_t state = 0;  // 0: none.
  };
  // A record claimed, or taken of those that came back, and not handed out.
  struct Ready {
    WalkedRecord record;  // Without a payload: found by its hold.
    std::uint32_t row, hold;
    std::uint64_t state;
  };
  // A record that came back.
  struct Returned {
    std::uint64_t offset, key, state;
    std::uint32_t row, hold;
    bool operator<(const Returned& other) const noexcept {
      return std::tie(offset, row, hold) < std::tie(other.offset, other.row, other.hold);
    }
    // Of all in a set the sum tells whether it is the same.
    std::uint64_t print() const noexcept {
      const std::uint64_t place = std::uint64_t{row} << 32 | hold;
      return (state ^ place * 0x9e37'79b9'7f4a'7c15ULL) * 0xff51'afd7'ed55'8ccdULL;
    }
  };
  // A slot of keys during a look for records that came back.
  struct SlotLook {
    std::uint64_t key = 0;
    std::uint64_t taken_word = 0;  // 0: it is somebody else's.
    std::uint64_t up_to = ~0ULL;   // Nothing behind this offset can be taken,
    std::uint32_t taken = 0;
    bool is_blocked = false;  // or nothing at all.
    bool was_mine = false;
    bool is_all = true;
  };

  const GroupGeometry& geometry() const noexcept { return group_->geometry(); }
  GroupSeat& seat() const noexcept { return group_->seat(seat_); }

  Result<void> take_seat(const MemberOptions& options, const std::byte* records);
  void make_tables();
  Errc check() noexcept;
  void vacate() noexcept;
  Errc know_of_closing() noexcept;
  void note_thread() noexcept;
  Got fail(Error error) noexcept;
  Got fail(Errc code) noexcept { return fail(Error{code, 0}); }
  bool is_closed() const noexcept;

  // Taking. docs/internals/groups.md, "Claiming".
  Got take_now(Delivery& delivery);
  Result<std::size_t> take_some(std::vector<Delivery>& into, std::size_t limit);
  Got hand_out(Delivery& delivery);
  std::uint64_t hand_over_again(std::uint64_t ready, bool& is_dead_letter) const noexcept;
  bool get_ready(std::size_t want, HoldPhase phase);
  bool claim_anywhere(std::size_t want, HoldPhase phase);
  bool claim(Lane& lane, std::size_t want, HoldPhase phase);
  bool take_spare(const HoldState& state, std::uint32_t& at) noexcept;
  // One attempt to claim.
  struct ClaimAttempt {
    CursorValue from;                 // Where the cursor was,
    ClaimName name;                   // and what the claim is called.
    HoldState state;                  // Of its holds.
    Walk walk = Walk::nothing;        // How the walk ended.
    std::uint64_t first_segment = 0;  // Where it began.
    std::size_t share = 0;            // Records, at most.
    std::size_t from_own = 0;         // Holds of the own row, from the end of free_.
    std::uint32_t spare = 0;          // Spare holds that were looked at.
    bool has_moved = false;           // Gaps were passed, or the end of a segment.
    bool is_late = false;             // By key: somebody else was faster.
    bool is_won = false;
  };
  enum class ClaimEnd : std::uint8_t { one, none, again, failed };
  void name_claim(ClaimAttempt& claim, std::uint32_t partition, HoldPhase phase) noexcept;
  void hold_records(ClaimAttempt& claim, Lane& lane, std::size_t want) noexcept;
  void gain_claimed_keys(ClaimAttempt& claim, std::uint32_t partition) noexcept;
  bool swap_cursor(const ClaimAttempt& claim, const Walker& walker) noexcept;
  ClaimEnd keep_claimed(const ClaimAttempt& claim, const Walker& walker) noexcept;
  void keep_holds(const ClaimAttempt& claim) noexcept;
  ClaimEnd drop_claimed(const ClaimAttempt& claim, std::uint32_t partition) noexcept;
  void drop_holds(std::uint64_t word) noexcept;
  bool pin(Lane& lane, const CursorValue& cursor) noexcept;
  void unpin(std::uint32_t partition) noexcept;
  // While a member of a group with a lease reads a record that it holds: the lease may run out
  // meanwhile, then others are done with the record, and its memory is reused or given back. Reused, what
  // was read is dropped; given back, it must not be touched, which the pin prevents.
  class LeasedRead {
   public:
    LeasedRead(MemberCore& member, const GroupHold& hold, std::uint64_t state) noexcept;
    LeasedRead(const LeasedRead&) = delete;
    LeasedRead& operator=(const LeasedRead&) = delete;
    ~LeasedRead() { member_.unpin(partition_); }

    bool is_mine() const noexcept { return is_mine_; }  // It may be read.
    bool is_still_mine() const noexcept;                // What was read is the record.

   private:
    MemberCore& member_;
    const GroupHold& hold_;
    std::uint64_t state_;
    std::uint32_t partition_ = 0;
    bool is_mine_ = false;
  };
  void write_hold(std::uint32_t row, std::uint32_t index, const WalkedRecord& record,
                  std::uint64_t key, std::uint64_t state) noexcept;
  void extend_lease(GroupHold& hold) noexcept;
  std::size_t fair_share(Lane& lane, std::size_t want) noexcept;
  Got deliver(const WalkedRecord& found, std::uint64_t state, std::uint32_t row, std::uint32_t hold,
              Delivery& delivery, bool is_dead_letter);
  Got deliver_returned(std::uint64_t state, std::uint32_t row, std::uint32_t hold,
                       bool is_dead_letter, Delivery& delivery);
  void begin_ready() noexcept;
  bool is_overtaking() noexcept;
  Got undeliver(Delivery& delivery, bool is_dead_letter) noexcept;
  Error what_failed() noexcept;
  bool add_copy(std::size_t size) noexcept;
  static bool make_room(std::vector<Delivery>& into) noexcept;
  bool bury_or_fail(const Delivery& delivery) noexcept;
  Got nothing_now();

  // Records that came back. "Redelivery".
  bool retake(std::size_t want) noexcept;
  bool retake_now(std::uint64_t returned, std::size_t want) noexcept;
  std::int64_t find_returned(const std::optional<Returned>& after) noexcept;
  void leave_behind(const Returned& one) noexcept;
  bool take_back(const Returned& one) noexcept;
  void put_back(std::uint32_t row, std::uint32_t index, std::uint64_t word,
                bool is_counted) noexcept;
  Result<void> bury(const Delivery& delivery);

  // By key.
  std::uint64_t key_hash(const WalkedRecord& record) const noexcept;
  void gain_keys() noexcept;
  void park() noexcept;
  void drop_key(std::uint64_t key) noexcept;
  bool may_have_slot(const Returned& one) noexcept;
  void take_slots() noexcept;
  void settle_slots() noexcept;
  template <class Visit>
  void each_of_slots(Visit&& visit) noexcept;
  void free_idle_slots() noexcept;

  // Letting go.
  Mine* find_mine(std::uint32_t row, std::uint32_t index) noexcept;
  void keep(std::uint32_t row, std::uint32_t index, const Mine& mine) noexcept;
  std::uint64_t* order_word(const Delivery& delivery) noexcept;
  std::uint64_t order_of(const Delivery& delivery) noexcept;
  Errc settle(const Delivery& delivery, HoldPhase to) noexcept;
  void forget(std::uint32_t row, std::uint32_t index, HoldPhase to) noexcept;
  void forget_slowly(std::uint32_t row, std::uint32_t index, HoldPhase to) noexcept;
  Result<std::size_t> acknowledge_until(std::uint64_t last);
  void lose(std::uint32_t row, std::uint32_t index) noexcept;
  void give_back_ready() noexcept;
  void note_in_flight() noexcept;
  void find_lost_holds() noexcept;
  void forget_lost_leases() noexcept;
  void note_lost_lease(std::uint32_t row, std::uint32_t hold, std::uint64_t state) noexcept;
  Errc why_not_held(const Delivery& delivery) noexcept;
  void wake_publishers() noexcept;
  void leave() noexcept;

  // Waiting, and looking after the others. "Deaths".
  bool is_ready() noexcept override;
  bool has_next(Lane& lane) noexcept;
  Result<std::int64_t> look_around() override;
  void look_now_and_then() noexcept;
  std::int64_t look_after_others() noexcept;
  std::int64_t look_after_holds() noexcept;
  void take_away(GroupHold& hold, HoldState state) noexcept;
  void announce_taken() noexcept;

  Topic topic_;
  std::shared_ptr<GroupView> group_;
  const std::byte* records_ = nullptr;
  std::vector<Lane> lanes_;
  std::size_t next_lane_ = 0;
  std::uint32_t seat_ = 0;
  bool seated_ = false;
  std::uint64_t thread_ = 0;        // Who used it last.
  bool by_key_ = false;             // As the group's flag.
  bool must_pin_ = false;           // See pin().
  bool taking_away_ = false;        // Since the last announce_taken().
  std::uint64_t claim_number_ = 0;  // Of the last claim made.
  // All have their full size since the member joined: nothing on the way of a record allocates.
  std::vector<std::uint32_t> free_;  // Own holds to use; the last one first.
  std::vector<OwnHold> own_;
  std::size_t lost_ = 0;                // Of own_.
  FixedMap<Mine> others_;               // In rows of others and in spare ones, by row and hold.
  std::vector<LostLease> lost_leases_;  // The last ones, and not asked about since.
  std::size_t next_lost_lease_ = 0;
  std::vector<Ready> ready_;  // From ready_at_ on.
  std::size_t ready_at_ = 0;
  bool has_lost_ = false;            // Since ready_ was filled, a record came back on its own.
  std::int64_t lease_ends_ns_ = 0;   // Nothing in the user's hands has a lease that ends sooner.
  std::vector<Ready> parked_;        // By the claim that is just made.
  FixedMap<std::uint32_t> of_slot_;  // How many records it has of a slot of keys.
  std::vector<Returned> found_;      // While it looks for what came back, as the next ones.
  FixedMap<SlotLook> looks_;
  FixedMap<std::uint64_t> found_state_;  // Of those in found_, by their place.
  std::uint64_t in_the_way_ = 0;         // Print of what others have of the slots just taken.
  bool others_have_keys_ = false;        // Something came back whose slot is somebody else's.
  std::size_t may_park_ = kAhead;        // Before it waits for others,
  std::size_t park_run_ = kAhead;        // of so many.
  std::int64_t claim_again_ns_ = 0;      // Nothing is claimed before; 0: at once.
  std::size_t found_count_ = 0;          // By the last look; found_ has not room for all.
  std::size_t returned_count_ = 0;       // By key, records that came back and are there.
  bool has_gained_ = false;              // By the last claim.
  bool is_room_full_ = false;            // At the last claim.
  std::optional<Delivery> kept_;         // For the next call: a buffer was too small.
  Error error_;                          // Of the last call.
  std::uint64_t order_ = 0;
  std::size_t in_flight_ = 0;
  std::uint64_t handed_ = 0;
  std::uint64_t acknowledged_ = 0;
  std::uint64_t seen_returned_ = ~0ULL;  // Value of the group's `returned` at the last full look.
  std::int64_t next_visible_ns_ = 0;     // When a delayed record becomes visible; 0: none known.
  std::uint32_t members_ = 1;            // As last counted.
  std::uint64_t claims_until_count_ = 0;
  struct Progress {
    std::uint64_t handed = 0;
    std::int64_t since_ns = 0;
  };
  std::vector<Progress> progress_;  // Of the others, by seat.
  std::int64_t looked_at_keys_ns_ = 0;
  std::uint64_t takes_ = 0;
  std::vector<std::vector<std::byte>> copies_;  // With a lease: what was handed out last.
  std::optional<Publisher> graveyard_;          // Of topic TOPIC.GROUP.dead.
};

}  // namespace leat::inline v0::detail
