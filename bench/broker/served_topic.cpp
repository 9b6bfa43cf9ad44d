#include "bench/broker/route.hpp"

namespace leat::bench::broker {

constexpr char kTopic[] = "measured";

ServedTopic::ServedTopic(const Places& places, const std::string& type, const Framing& framing,
                         bool at_once)
    : framing_{framing}, at_once_{at_once}, broker_{places} {
  Administration administration{broker_};
  administration.create_topic(kTopic, type);
  consumers_ = administration.join(kTopic, "pull", framing.is_raw_out);
  producers_ = administration.join(kTopic, "pub", framing.is_raw_in);
}

std::unique_ptr<ConsumerEnd> ServedTopic::consumer(std::uint32_t /*index*/) {
  if (framing_.is_raw_out) return raw_client(consumers_, raw_buffer_bytes(at_once_));
  return connected_socket(ZMQ_PULL, consumers_);
}

std::unique_ptr<ProducerEnd> ServedTopic::producer() {
  if (framing_.is_raw_in) return raw_client(producers_, raw_buffer_bytes(at_once_));
  return connected_socket(ZMQ_PUSH, producers_);
}

std::uint64_t ServedTopic::cpu_ns() const { return cpu_ns_of(broker_.process()); }

}  // namespace leat::bench::broker
