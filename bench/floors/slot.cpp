#include "slot.hpp"

#include <vector>

#include "floors.hpp"

namespace leat::bench {
namespace {

class FloorChannel {
 public:
  FloorChannel(const Load& load, SlotMapping mapping)
      : size_{load.size}, mapping_{mapping}, there_{load.size}, back_{load.size} {}

  class Side {
   public:
    Side(const FloorChannel& channel, End end)
        : in_{end == End::sender ? channel.back_ : channel.there_},
          out_{end == End::sender ? channel.there_ : channel.back_},
          copy_(channel.size_) {
      in_.memory().prefault();
      out_.memory().prefault();
      if (channel.mapping_ == SlotMapping::read_only) in_.memory().make_read_only();
    }

    void send(std::span<const std::byte> message) { out_.put(message, ++sent_); }
    void flush() {}

    template <class Visit>
    std::size_t receive(std::size_t, const Visit& visit) {
      in_.await(++received_, spin_);
      copy_bytes(copy_.data(), in_.payload().data(), copy_.size());
      visit(std::span<const std::byte>(copy_));
      return 1;
    }

   private:
    const Slot<SharedMemory>& in_;
    const Slot<SharedMemory>& out_;
    std::vector<std::byte> copy_;
    std::uint64_t sent_ = 0;
    std::uint64_t received_ = 0;
    Spin spin_;
  };

 private:
  std::size_t size_;
  SlotMapping mapping_;
  Slot<SharedMemory> there_;
  Slot<SharedMemory> back_;
};

}  // namespace

RoundTrip slot_round_trip(const Load& load, const Placement& placement, SlotMapping mapping) {
  FloorChannel channel(load, mapping);
  return round_trip_of(measure_round_trip(channel, load, placement), load);
}

}  // namespace leat::bench
