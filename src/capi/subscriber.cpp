// Subscribers in C.
#include <array>
#include <span>

#include "capi/handles.hpp"

namespace leat::capi {
namespace {

std::int32_t to_options(const leat_subscriber_options* given, SubscriberOptions& options) {
  leat_subscriber_options from = LEAT_SUBSCRIBER_OPTIONS_INIT;
  if (const std::int32_t wrong = read_options(given, from); wrong != LEAT_OK) return wrong;
  const auto begin = from_of(from.from, from.from_value);
  if (!begin || !are_flags(from.gating, from.in_place, from.any_thread, from.interruptible) ||
      !read_stage(from.read, options.read) || from.spin_ns < 0 || from.patience_ns < 0)
    return LEAT_ERR_INVALID_ARGUMENT;
  options.from = *begin;
  options.gating = from.gating != 0;
  options.in_place = from.in_place != 0;
  options.partition = partition_of(from.partition);
  options.any_thread = from.any_thread != 0;
  options.interruptible = from.interruptible != 0;
  options.spin = std::chrono::nanoseconds{from.spin_ns};
  options.patience = std::chrono::nanoseconds{from.patience_ns};
  return LEAT_OK;
}

// Fills the array; returns how many. The library counts gaps too, so there is room for each. If it runs out of
// memory in one partition, what it has delivered from others is returned; the next call tells.
[[gnu::always_inline]] inline Result<std::size_t> fill(Subscriber& subscriber, leat_record* records,
                                                       std::uint32_t capacity) {
  leat_record* at = records;
  try {
    return subscriber.poll_batch(
        capacity, [&at](const Record& record) { put_record(*at++, record); },
        [&at, end = records + capacity](const Event& gap) {
          LEAT_ASSERT(at != end);
          put_gap(*at++, gap);
        });
  } catch (const std::exception&) {
    if (at == records) throw;
    return static_cast<std::size_t>(at - records);
  }
}

bool can_fill(const leat_subscriber* subscriber, const leat_record* records, std::uint32_t capacity,
              const std::uint32_t* count) noexcept {
  return subscriber != nullptr && records != nullptr && capacity != 0 && count != nullptr;
}

}  // namespace
}  // namespace leat::capi

using namespace leat;
using namespace leat::capi;

std::int32_t leat_topic_subscriber(leat_topic* topic, const leat_subscriber_options* options,
                                   leat_subscriber** subscriber, std::int32_t* detail) {
  if (subscriber == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  *subscriber = nullptr;
  if (topic == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  if (is_forked(*topic)) return LEAT_ERR_FORKED;
  return guarded(detail, [&] {
    SubscriberOptions wanted;
    if (const std::int32_t wrong = to_options(options, wanted); wrong != LEAT_OK) return wrong;
    auto made = topic->topic.subscriber(wanted);
    if (!made) return failed(made.error(), detail);
    *subscriber = new leat_subscriber{.subscriber = std::move(*made),
                                      .partitions = topic->topic.partitions()};
    return LEAT_OK;
  });
}

std::int32_t leat_subscriber_close(leat_subscriber** subscriber) { return close(subscriber); }

std::int32_t leat_subscriber_poll(leat_subscriber* subscriber, leat_record* records,
                                  std::uint32_t capacity, std::uint32_t* count,
                                  std::int32_t* detail) {
  if (!can_fill(subscriber, records, capacity, count)) [[unlikely]]
    return LEAT_ERR_INVALID_ARGUMENT;
  *count = 0;
  return guarded(detail, [&] {
    return code_of(fill(subscriber->subscriber, records, capacity), count, detail);
  });
}

std::int32_t leat_subscriber_receive(leat_subscriber* subscriber, leat_record* records,
                                     std::uint32_t capacity, std::uint32_t* count,
                                     std::int64_t timeout_ns, std::int32_t* detail) {
  if (!can_fill(subscriber, records, capacity, count) || !is_timeout(timeout_ns)) [[unlikely]]
    return LEAT_ERR_INVALID_ARGUMENT;
  *count = 0;
  return guarded(detail, [&]() -> std::int32_t {
    std::optional<Deadline> deadline;  // Reads the clock, so only if it waits.
    while (true) {
      auto filled = fill(subscriber->subscriber, records, capacity);
      if (!filled || *filled != 0) return code_of(filled, count, detail);
      if (deadline && deadline->passed()) return LEAT_ERR_TIMEOUT;  // It was ready and got nothing.
      if (!deadline) deadline = deadline_of(timeout_ns);
      if (auto ready = subscriber->subscriber.wait(*deadline); !ready)
        return failed(ready.error(), detail);
    }
  });
}

std::int32_t leat_subscriber_wait(leat_subscriber* subscriber, std::int64_t timeout_ns) {
  if (subscriber == nullptr || !is_timeout(timeout_ns)) return LEAT_ERR_INVALID_ARGUMENT;
  return guarded(nullptr, [&] {
    return code_of(subscriber->subscriber.wait(deadline_of(timeout_ns)), nullptr);
  });
}

std::int32_t leat_subscriber_wait_any(leat_subscriber* const* subscribers, std::uint32_t count,
                                      std::int64_t timeout_ns, std::uint32_t* index) {
  static_assert(LEAT_MAX_WAIT_ANY == kMaxWaitAny);
  if (subscribers == nullptr || count == 0 || count > kMaxWaitAny || index == nullptr ||
      !is_timeout(timeout_ns))
    return LEAT_ERR_INVALID_ARGUMENT;
  *index = 0;
  std::array<Subscriber*, kMaxWaitAny> all{};
  for (std::uint32_t i = 0; i < count; ++i) {
    if (subscribers[i] == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
    all[i] = &subscribers[i]->subscriber;
  }
  return guarded(nullptr, [&] {
    return code_of(wait_any(std::span{all.data(), count}, deadline_of(timeout_ns)), index, nullptr);
  });
}

std::int32_t leat_subscriber_wait_fd(leat_subscriber* subscriber, std::int32_t* fd,
                                     std::int32_t* detail) {
  if (subscriber == nullptr || fd == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  *fd = -1;
  return guarded(detail, [&] { return code_of(subscriber->subscriber.wait_fd(), fd, detail); });
}

std::int32_t leat_subscriber_offset(leat_subscriber* subscriber, std::uint32_t partition,
                                    std::uint64_t* offset) {
  if (subscriber == nullptr || offset == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  *offset = 0;
  if (is_forked(*subscriber)) return LEAT_ERR_FORKED;
  if (partition >= subscriber->partitions) return LEAT_ERR_INVALID_ARGUMENT;
  *offset = subscriber->subscriber.offset(partition);
  return LEAT_OK;
}

std::int32_t leat_subscriber_is_lossy(leat_subscriber* subscriber, std::uint32_t* is_lossy) {
  if (subscriber == nullptr || is_lossy == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  if (is_forked(*subscriber)) return LEAT_ERR_FORKED;
  *is_lossy = subscriber->subscriber.is_lossy() ? 1 : 0;
  return LEAT_OK;
}

std::int32_t leat_subscriber_stop(leat_subscriber* subscriber) {
  return stop_waits(subscriber, &leat_subscriber::subscriber);
}
std::int32_t leat_subscriber_resume(leat_subscriber* subscriber) {
  return resume_waits(subscriber, &leat_subscriber::subscriber);
}
std::int32_t leat_subscriber_is_stopped(leat_subscriber* subscriber, std::uint32_t* is_stopped) {
  return waits_are_stopped(subscriber, &leat_subscriber::subscriber, is_stopped);
}
