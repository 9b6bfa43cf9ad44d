// Publishers in C.
#include <array>
#include <span>

#include "capi/handles.hpp"

namespace leat::capi {
namespace {

Bytes to_bytes(const leat_bytes& bytes) noexcept { return {bytes.data, bytes.size}; }

// The headers of one record at a time. Most records have few, which need no memory.
class HeaderList {
 public:
  // Throws bad_alloc. Returns LEAT_OK, TOO_LARGE or INVALID_ARGUMENT.
  std::int32_t read(const leat_new_record& record, std::span<const leat::Header>& into) {
    const std::size_t count = record.header_count;
    leat::Header* headers = few_.data();
    if (count > few_.size()) {
      many_.resize(count);
      headers = many_.data();
    }
    for (std::size_t i = 0; i < count; ++i) {
      const leat_new_header& from = record.headers[i];
      if (is_nowhere(from.name) || is_nowhere(from.value)) return LEAT_ERR_INVALID_ARGUMENT;
      if (from.name.size > kMaxBytes || from.value.size > kMaxBytes) return LEAT_ERR_TOO_LARGE;
      headers[i] = {to_bytes(from.name).text(), to_bytes(from.value)};
    }
    into = {headers, count};
    return LEAT_OK;
  }

 private:
  std::array<leat::Header, 8> few_;
  std::vector<leat::Header> many_;
};

// Returns LEAT_OK, TOO_LARGE or INVALID_ARGUMENT.
std::int32_t read_record(const leat_new_record& from, HeaderList& headers, NewRecord& into) {
  if (is_nowhere(from.value) || is_nowhere(from.key) || is_nowhere(from.headers, from.header_count))
    return LEAT_ERR_INVALID_ARGUMENT;
  if (from.value.size > kMaxBytes || from.key.size > kMaxBytes) return LEAT_ERR_TOO_LARGE;
  into.value = to_bytes(from.value);
  if (from.key.data != nullptr) into.key = to_bytes(from.key);
  into.partition = partition_of(from.partition);
  if (from.header_count == 0) return LEAT_OK;
  return headers.read(from, into.headers);
}

// For sizes that the library is not asked about.
[[gnu::cold]] std::int32_t refused(std::int32_t code, const leat_publisher& publisher,
                                   std::int32_t* detail) noexcept {
  const bool is_size = code == LEAT_ERR_TOO_LARGE;
  return failed({static_cast<Errc>(code),
                 is_size ? static_cast<std::int32_t>(publisher.publisher.max_record_size()) : 0},
                detail);
}

std::int32_t add(Batch& batch, const leat_publisher& publisher, const leat_bytes& value,
                 HeaderList&, std::int32_t* detail) {
  if (is_nowhere(value)) return LEAT_ERR_INVALID_ARGUMENT;
  if (value.size > kMaxBytes) return refused(LEAT_ERR_TOO_LARGE, publisher, detail);
  return code_of(batch.add(to_bytes(value)), detail);
}
std::int32_t add(Batch& batch, const leat_publisher& publisher, const leat_new_record& from,
                 HeaderList& headers, std::int32_t* detail) {
  NewRecord record;
  if (const std::int32_t wrong = read_record(from, headers, record); wrong != LEAT_OK)
    return refused(wrong, publisher, detail);
  return code_of(batch.add(record), detail);
}

template <class Item>
std::int32_t publish_all(leat_publisher* publisher, const Item* items, std::uint64_t count,
                         std::uint32_t partition, std::int64_t timeout_ns, std::uint64_t* offset,
                         std::int32_t* detail) {
  if (publisher == nullptr || items == nullptr || count == 0 || !is_timeout(timeout_ns))
    return LEAT_ERR_INVALID_ARGUMENT;
  return guarded(detail, [&] {
    auto batch = publisher->publisher.batch(partition_of(partition));
    if (!batch) return failed(batch.error(), detail);
    HeaderList headers;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::int32_t wrong = add(*batch, *publisher, items[i], headers, detail);
      if (wrong != LEAT_OK) [[unlikely]]
        return wrong;
    }
    return code_of(batch->commit(deadline_of(timeout_ns)), offset, detail);
  });
}

leat_room_holder to_room_holder(const RoomHolder& from) noexcept {
  const bool is_group = from.kind == RoomHolder::Kind::group;
  leat_room_holder to{.kind = static_cast<std::uint32_t>(from.kind),
                      .pid = from.pids.empty() ? 0 : from.pids.front(),
                      .members = is_group ? static_cast<std::uint32_t>(from.pids.size()) : 0,
                      .reserved = 0,
                      .group = {}};
  from.group.copy(to.group, sizeof(to.group) - 1);
  return to;
}

// Whether it is the claim that is open.
bool is_open(const leat_publisher& publisher, const leat_claim& claim) noexcept {
  return publisher.claim && claim.id == publisher.claim_id &&
         claim.data == reinterpret_cast<std::uint8_t*>(publisher.claim->payload().data());
}

}  // namespace
}  // namespace leat::capi

using namespace leat;
using namespace leat::capi;

std::int32_t leat_topic_publisher(leat_topic* topic, const leat_publisher_options* options,
                                  leat_publisher** publisher, std::int32_t* detail) {
  if (publisher == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  *publisher = nullptr;
  if (topic == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  if (is_forked(*topic)) return LEAT_ERR_FORKED;
  return guarded(detail, [&] {
    leat_publisher_options from = LEAT_PUBLISHER_OPTIONS_INIT;
    if (const std::int32_t wrong = read_options(options, from); wrong != LEAT_OK) return wrong;
    PublisherOptions wanted;
    if (!are_flags(from.exclusive, from.interruptible, from.reserved) || from.reserved != 0 ||
        !read_stage(from.acknowledge, wanted.acknowledge))
      return LEAT_ERR_INVALID_ARGUMENT;
    wanted.exclusive = from.exclusive != 0;
    wanted.partition = partition_of(from.partition);
    wanted.interruptible = from.interruptible != 0;
    auto made = topic->topic.publisher(wanted);
    if (!made) return failed(made.error(), detail);
    *publisher =
        new leat_publisher{.publisher = std::move(*made), .partitions = topic->topic.partitions()};
    return LEAT_OK;
  });
}

std::int32_t leat_publisher_close(leat_publisher** publisher) { return close(publisher); }

std::int32_t leat_publisher_publish(leat_publisher* publisher, const void* value,
                                    std::uint64_t size, std::int64_t timeout_ns,
                                    std::uint64_t* offset, std::int32_t* detail) {
  if (publisher == nullptr || is_nowhere(value, size) || !is_timeout(timeout_ns)) [[unlikely]]
    return LEAT_ERR_INVALID_ARGUMENT;
  return guarded(detail, [&] {
    if (size > kMaxBytes) [[unlikely]]
      return refused(LEAT_ERR_TOO_LARGE, *publisher, detail);
    return code_of(publisher->publisher.publish(Bytes{value, size}, deadline_of(timeout_ns)),
                   offset, detail);
  });
}

std::int32_t leat_publisher_publish_record(leat_publisher* publisher, const leat_new_record* record,
                                           std::int64_t timeout_ns, std::uint64_t* offset,
                                           std::int32_t* detail) {
  if (publisher == nullptr || record == nullptr || !is_timeout(timeout_ns))
    return LEAT_ERR_INVALID_ARGUMENT;
  return guarded(detail, [&] {
    HeaderList headers;
    NewRecord wanted;
    if (const std::int32_t wrong = read_record(*record, headers, wanted); wrong != LEAT_OK)
      return refused(wrong, *publisher, detail);
    return code_of(publisher->publisher.publish(wanted, deadline_of(timeout_ns)), offset, detail);
  });
}

std::int32_t leat_publisher_publish_batch(leat_publisher* publisher, const leat_bytes* values,
                                          std::uint64_t count, std::uint32_t partition,
                                          std::int64_t timeout_ns, std::uint64_t* offset,
                                          std::int32_t* detail) {
  return publish_all(publisher, values, count, partition, timeout_ns, offset, detail);
}

std::int32_t leat_publisher_publish_record_batch(leat_publisher* publisher,
                                                 const leat_new_record* records,
                                                 std::uint64_t count, std::uint32_t partition,
                                                 std::int64_t timeout_ns, std::uint64_t* offset,
                                                 std::int32_t* detail) {
  return publish_all(publisher, records, count, partition, timeout_ns, offset, detail);
}

std::int32_t leat_publisher_claim(leat_publisher* publisher, std::uint64_t size,
                                  std::int64_t timeout_ns, leat_claim* claim,
                                  std::int32_t* detail) {
  if (claim == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  claim->data = nullptr;  // Its size stays: the caller may ask again with it.
  claim->offset = 0;
  claim->id = 0;
  if (publisher == nullptr || !is_timeout(timeout_ns)) return LEAT_ERR_INVALID_ARGUMENT;
  return guarded(detail, [&] {
    if (size > kMaxBytes) return refused(LEAT_ERR_TOO_LARGE, *publisher, detail);
    if (publisher->claim && !is_forked(*publisher)) return LEAT_ERR_BUSY;
    auto made = publisher->publisher.claim(size, deadline_of(timeout_ns));
    if (!made) return failed(made.error(), detail);
    const Claim& kept = publisher->claim.emplace(std::move(*made));
    *claim = {.data = reinterpret_cast<std::uint8_t*>(kept.payload().data()),
              .size = size,
              .offset = kept.offset(),
              .id = ++publisher->claim_id};
    return LEAT_OK;
  });
}

std::int32_t leat_publisher_commit(leat_publisher* publisher, const leat_claim* claim,
                                   std::uint64_t size, std::int32_t* detail) {
  if (publisher == nullptr || claim == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  if (is_forked(*publisher)) return LEAT_ERR_FORKED;
  if (!is_open(*publisher, *claim)) return LEAT_ERR_NOT_IN_FLIGHT;
  if (size > publisher->claim->payload().size()) return LEAT_ERR_INVALID_ARGUMENT;
  return guarded(detail, [&] {
    const std::int32_t done = code_of(publisher->claim->commit(size), detail);
    publisher->claim.reset();
    return done;
  });
}

std::int32_t leat_publisher_abort(leat_publisher* publisher, const leat_claim* claim,
                                  std::int32_t* detail) {
  if (publisher == nullptr || claim == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  if (is_forked(*publisher)) return LEAT_ERR_FORKED;
  if (!is_open(*publisher, *claim)) return LEAT_ERR_NOT_IN_FLIGHT;
  return guarded(detail, [&] {
    const std::int32_t done = code_of(publisher->claim->abort(), detail);
    publisher->claim.reset();
    return done;
  });
}

std::int32_t leat_publisher_flush(leat_publisher* publisher, std::int64_t timeout_ns,
                                  std::int32_t* detail) {
  if (publisher == nullptr || !is_timeout(timeout_ns)) return LEAT_ERR_INVALID_ARGUMENT;
  return guarded(
      detail, [&] { return code_of(publisher->publisher.flush(deadline_of(timeout_ns)), detail); });
}

std::int32_t leat_publisher_request_sync(leat_publisher* publisher, std::int32_t* detail) {
  if (publisher == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  return guarded(detail, [&] { return code_of(publisher->publisher.request_sync(), detail); });
}

std::int32_t leat_publisher_durable_offset(leat_publisher* publisher, std::uint32_t partition,
                                           std::uint64_t* offset) {
  if (publisher == nullptr || offset == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  *offset = 0;
  if (is_forked(*publisher)) return LEAT_ERR_FORKED;
  if (partition != LEAT_ANY_PARTITION && partition >= publisher->partitions)
    return LEAT_ERR_INVALID_ARGUMENT;
  return guarded(nullptr, [&] {
    *offset = publisher->publisher.durable_offset(partition_of(partition));
    return LEAT_OK;
  });
}

std::int32_t leat_publisher_durable_fd(leat_publisher* publisher, std::int32_t* fd,
                                       std::int32_t* detail) {
  if (publisher == nullptr || fd == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  *fd = -1;
  return guarded(detail, [&] { return code_of(publisher->publisher.durable_fd(), fd, detail); });
}

std::int32_t leat_publisher_room_fd(leat_publisher* publisher, std::uint32_t partition,
                                    std::int32_t* fd, std::int32_t* detail) {
  if (publisher == nullptr || fd == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  *fd = -1;
  return guarded(detail, [&] {
    return code_of(publisher->publisher.room_fd(partition_of(partition)), fd, detail);
  });
}

std::int32_t leat_publisher_waiting_for(leat_publisher* publisher, std::uint32_t partition,
                                        leat_room_holder* holders, std::uint32_t capacity,
                                        std::uint32_t* count, std::int32_t* detail) {
  if (count == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  *count = 0;
  if (publisher == nullptr || is_nowhere(holders, capacity)) return LEAT_ERR_INVALID_ARGUMENT;
  return guarded(detail, [&] {
    const auto found = publisher->publisher.waiting_for(partition_of(partition));
    if (!found) return failed(found.error(), detail);
    for (std::size_t i = 0; i < found->size() && i < capacity; ++i)
      holders[i] = to_room_holder((*found)[i]);
    *count = static_cast<std::uint32_t>(found->size());
    return LEAT_OK;
  });
}

std::int32_t leat_publisher_last_offset(leat_publisher* publisher, std::uint64_t* offset) {
  if (publisher == nullptr || offset == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  *offset = 0;
  if (is_forked(*publisher)) return LEAT_ERR_FORKED;
  const auto last = publisher->publisher.last_offset();
  if (!last) return LEAT_ERR_NOT_FOUND;
  *offset = *last;
  return LEAT_OK;
}

std::int32_t leat_publisher_max_record_size(leat_publisher* publisher, std::uint64_t* bytes) {
  if (publisher == nullptr || bytes == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  if (is_forked(*publisher)) return LEAT_ERR_FORKED;
  *bytes = publisher->publisher.max_record_size();
  return LEAT_OK;
}

std::int32_t leat_publisher_partition(leat_publisher* publisher, std::uint32_t* partition) {
  if (publisher == nullptr || partition == nullptr) return LEAT_ERR_INVALID_ARGUMENT;
  if (is_forked(*publisher)) return LEAT_ERR_FORKED;
  *partition = publisher->publisher.partition();
  return LEAT_OK;
}

std::int32_t leat_publisher_stop(leat_publisher* publisher) {
  return stop_waits(publisher, &leat_publisher::publisher);
}
std::int32_t leat_publisher_resume(leat_publisher* publisher) {
  return resume_waits(publisher, &leat_publisher::publisher);
}
std::int32_t leat_publisher_is_stopped(leat_publisher* publisher, std::uint32_t* is_stopped) {
  return waits_are_stopped(publisher, &leat_publisher::publisher, is_stopped);
}
