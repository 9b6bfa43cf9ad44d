// Shared by the unit tests of groups: groups that begin at the beginning, and
// short ways to take records.
//
//     const Group group = group_of(*topic, {.max_deliveries = 2});
//     Member member = must(group.join());
//     EXPECT_EQ(drain(member), (Log{"0 a", "1 b"}));   // takes and acknowledges all there are
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "unit/testing.hpp"

namespace leat {

// How long anything may take before a test considers it stuck.
inline constexpr auto kPatience = 30s;
// How long to wait for something that must not come. Too short a time could only hide a failure.
inline constexpr auto kNothingFor = 30ms;

inline constexpr char kGroupName[] = "g";

inline Group group_of(const Topic& topic, GroupOptions options = {},
                      const std::string& name = kGroupName) {
  options.from = From::beginning;
  return must(topic.group(name, options));
}
inline Member join(const Group& group) { return must(group.join()); }

inline std::string to_text(const Delivery& delivery) { return to_text(delivery.record); }
inline Log to_log(const std::vector<Delivery>& deliveries) {
  Log log;
  for (const Delivery& delivery : deliveries) log.push_back(to_text(delivery));
  return log;
}

// The value of a record's header.
inline std::string header_of(const Record& record, std::string_view name) {
  for (const Header header : record.headers) {
    if (header.name == name) return std::string{header.value.text()};
  }
  return "(none)";
}
inline Delivery take(Member& member) { return must(member.receive(kPatience)); }
// Fails if the member was not woken but found the record only when its deadline passed.
inline Delivery take_in_time(Member& member) {
  const Deadline half{kPatience / 2};
  Delivery one = take(member);
  EXPECT_FALSE(half.passed());
  return one;
}

// Takes all available records without acknowledging them.
inline std::vector<Delivery> take_all(Member& member) {
  std::vector<Delivery> taken;
  while (true) {
    auto count = member.receive(taken, 1000, Deadline::immediate());
    if (!count && count.error().code == Errc::timeout) return taken;
    must(std::move(count));
  }
}

inline Log drain(Member& member) {
  const std::vector<Delivery> taken = take_all(member);
  Log log = to_log(taken);  // Before they are acknowledged.
  for (const Delivery& delivery : taken) must(member.acknowledge(delivery));
  return log;
}

// Waits for `count` records and acknowledges them.
inline Log drain(Member& member, std::size_t count) {
  Log log;
  while (log.size() < count) {
    const Delivery delivery = take(member);
    log.push_back(to_text(delivery));
    must(member.acknowledge(delivery));
  }
  return log;
}

// By key, with a lease: `other` takes away a record of another member whose
// lease ran out, and finds that the key's slot still belongs to that member.
// False if it got further and received the record.
inline bool takes_lease_away(const Group& group, Member& other) {
  do {
    if (other.receive(Deadline::immediate())) return false;
  } while (group.info().returned == 0);
  return !other.receive(Deadline::immediate());
}

// Publishes a record for each pair of key and value.
inline void publish_pairs(Publisher& publisher,
                          std::initializer_list<std::pair<const char*, std::string>> pairs) {
  for (const auto& [key, value] : pairs) must(publisher.publish({.key = key, .value = value}));
}
inline void publish_all(Publisher& publisher, std::initializer_list<const char*> values) {
  for (const char* value : values) must(publisher.publish(value));
}
// Publishes records with the values "0", "1", …
inline void publish_numbers(Publisher& publisher, std::uint64_t count, std::uint64_t first = 0) {
  for (std::uint64_t i = 0; i < count; ++i) must(publisher.publish(std::to_string(first + i)));
}
inline Log numbers(std::uint64_t count, std::uint64_t first = 0) {
  Log log;
  for (std::uint64_t i = first; i < first + count; ++i)
    log.push_back(std::to_string(i) + " " + std::to_string(i));
  return log;
}

inline Log sorted(Log log) {
  std::sort(log.begin(), log.end());
  return log;
}
inline Log operator+(Log left, const Log& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

// The values of all records in a topic of dead letters.
inline std::vector<std::string> dead_values(const Topic& dead) {
  std::vector<std::string> values;
  auto reader = must(dead.subscriber({.from = From::beginning, .gating = false}));
  must(reader.poll(1000, [&](const Record& record) { values.emplace_back(record.text()); }));
  return values;
}
inline Topic dead_topic(const TestTopic& topic) {
  return must(Topic::open(std::string{kTopicName} + "." + kGroupName + ".dead", kPatience,
                          topic.directory()));
}

}  // namespace leat
