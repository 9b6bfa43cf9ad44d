#include "subscriber_reader.hpp"

#include <algorithm>

namespace leat::broker {

Outcome<SubscriberReader> SubscriberReader::open(const Topic& topic, Encode encode) {
  const auto problem = [&](Error error) {
    return Problem{error.code, "cannot subscribe to " + topic.name() + ": " + describe(error)};
  };
  const bool may_wait = topic.policy() != Policy::overwrite;
  auto subscriber =
      topic.subscriber({.from = From::end, .gating = may_wait, .spin = {}, .patience = {}});
  if (!subscriber) return problem(subscriber.error());
  subscriber->read_memory_only(true);
  auto fd = subscriber->wait_fd();
  if (!fd) return problem(fd.error());
  return SubscriberReader{std::move(*subscriber), *fd, std::move(encode)};
}

void SubscriberReader::count_lost() {
  subscriber.on_event([this](const Event& event) {
    if (event.reason == GapReason::overwritten) lost += event.count;
  });
}

void SubscriberReader::read(const Limits& limits) {
  static constexpr std::atomic<bool> kNever = false;
  read(limits, kNever);
}

void SubscriberReader::read_from_disk(const Limits& limits, const std::atomic<bool>& is_over) {
  subscriber.read_memory_only(false);
  read(limits, is_over);
  subscriber.read_memory_only(true);
}

void SubscriberReader::read(const Limits& limits, const std::atomic<bool>& is_over) {
  constexpr std::size_t kChunk = 64 * 1024;
  constexpr std::size_t kLarge = 4096;
  constexpr std::uint64_t kRecords = 4096;
  chunk = std::make_shared<Chunk>();
  encodes = limits.encodes;
  failure = {};
  while (chunk->bytes.size() < kChunk && chunk->records < kRecords && !is_over) {
    const bool are_large = chunk->records == 0 || chunk->bytes.size() / chunk->records > kLarge;
    const std::uint64_t offset = subscriber.offset();
    const std::uint64_t left = limits.until - std::min(limits.until, offset);
    const std::uint64_t step = std::min<std::uint64_t>(are_large ? 1 : 16, left);
    if (step == 0) return;
    auto count = subscriber.poll(step, [&](const Record& record) {
      reached = record.offset + 1;
      ++chunk->records;
      chunk->payload_bytes += record.value.size();
      if (encodes) encode(chunk->bytes, record);
    });
    if (!count) failure = count.error();
    if (!count || *count < step) return;
  }
}

}  // namespace leat::broker
