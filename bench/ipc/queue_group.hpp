// A message queue in the place of a consumer group: the same processes, payloads and checks.
//
//     MessageCost cost = measure_queue(QueueKind::boost_mq, {.publishers = 2, .members = 2}, {0, 1});
#pragma once

#include <vector>

#include "bench/leat/group.hpp"
#include "message_queues.hpp"

namespace leat::bench {

// Ignores the load's mode and batch: one record at a time.
MessageCost measure_queue(QueueKind kind, const GroupLoad& load, const std::vector<int>& cpus);

}  // namespace leat::bench
