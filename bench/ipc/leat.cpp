// Leat's own log, read by a subscriber or through a consumer group.
#include "bench/leat/channel.hpp"
#include "measure.hpp"
#include "methods.hpp"

namespace leat::bench::ipc {
namespace {

// A blocking reader sleeps at once and a spinning one pauses, as those of the other methods do.
template <class Receiver>
class Channel : public LogChannel<Receiver> {
 public:
  explicit Channel(const Load& load)
      : LogChannel<Receiver>(
            load, load.variant == Variant::blocking ? WhenEmpty::sleep : WhenEmpty::pause) {}
};

}  // namespace

std::vector<Method> leat_methods() {
  return {
      {.name = "leat",
       .measure = &measure_channel<Channel<TopicReceiver>>,
       .batches = true,
       .facts = {.broadcast = true, .survives_kill = true}},
      {.name = "leat-group",
       .measure = &measure_channel<Channel<GroupReceiver>>,
       .batches = true,
       // The members of the group share. That a second group would get all, too, is not measured.
       .facts = {.shared = true, .survives_kill = true}},
  };
}

}  // namespace leat::bench::ipc
