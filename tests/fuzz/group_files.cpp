// Damaged consumer group files. The fuzzer overwrites bytes of the group's file and of its topic's
// files while members hold records, and again between their calls. Every call must return a record
// or an error. If this failed, a process that damages a topic's files could crash other processes
// or make them loop forever.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "leat/leat.hpp"
#include "scribble.hpp"

namespace {

using leat::Deadline;
using leat::fuzz::directory;
using leat::fuzz::Input;
using leat::fuzz::scribble;
using namespace std::chrono_literals;

std::size_t sum = 0;  // Makes sure that every byte is read.

void touch(const leat::Record& record) {
  for (const std::byte byte : record.value) sum += std::to_integer<std::size_t>(byte);
  for (const std::byte byte : record.key) sum += std::to_integer<std::size_t>(byte);
  for (const leat::Header header : record.headers) sum += header.name.size() + header.value.size();
}

void fill(leat::Publisher& publisher) {
  const std::array<leat::Header, 1> headers = {{{"name", "value"}}};
  for (int i = 0; i < 8; ++i) {
    const std::string value(static_cast<std::size_t>(i) * 97, 'x');
    const std::string key = "key " + std::to_string(i % 3);
    (void)publisher.publish({.key = key, .headers = headers, .value = value},
                            Deadline::immediate());
    auto batch = publisher.batch();
    if (batch && batch->add("one") && batch->add({.key = "two", .value = "2"})) {
      (void)batch->commit(Deadline::immediate());
    }
    { auto dropped = publisher.try_claim(10); }
  }
}

// Lets a member make calls chosen by the input. It keeps some of the records it gets.
void work(leat::Member& member, Input& input, const std::string& group_file) {
  std::vector<leat::Delivery> held;
  for (int i = 0; i < 40; ++i) {
    const auto how = input.take(1);
    const std::size_t before = held.size();
    switch (how % 8) {
      case 0: {
        auto one = member.receive(Deadline::immediate());
        if (one) held.push_back(*one);
        break;
      }
      case 1: (void)member.receive(held, 1 + how / 8 % 8, Deadline::immediate()); break;
      case 2:
        (void)member.poll(1 + how / 8, [](const leat::Delivery& one) { touch(one.record); });
        break;
      case 3:
        if (!held.empty()) (void)member.acknowledge_up_to(held[held.size() / 2]);
        break;
      case 4: {
        std::array<std::byte, 64> buffer;
        (void)member.receive_copy(buffer, Deadline::immediate());
        break;
      }
      case 5: (void)member.wait(100us); break;
      case 6: scribble(input, how / 8 % 4 == 0 ? "control" : group_file); break;
      default:
        if (held.empty()) break;
        if (how / 8 % 2 == 0) {
          (void)member.acknowledge(held.back());
        } else {
          (void)member.requeue(held.back(), how / 8 % 4 == 1 ? 0ns : 10us);
        }
        held.pop_back();
    }
    for (std::size_t k = before; k < held.size(); ++k) touch(held[k].record);
  }
}

std::string group_file() {
  for (const auto& entry : std::filesystem::directory_iterator{directory() + "/t"}) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("group-")) return name;
  }
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input{data, size};
  const auto choices = input.take(1);
  std::filesystem::remove_all(directory());
  auto topic = leat::Topic::create("t", {.capacity_bytes = 4 * 4096,
                                         .segment_bytes = 4096,
                                         .timestamps = (choices & 1) != 0,
                                         .participants = 8,
                                         .directory = directory()});
  if (!topic) std::abort();
  auto group = topic->group("g", {.from = leat::From::beginning,
                                  .mode = (choices & 2) != 0 ? leat::GroupMode::at_most_once
                                                             : leat::GroupMode::at_least_once,
                                  .by_key = (choices & 4) != 0,
                                  .members = 4,
                                  .in_flight = 8,
                                  .max_deliveries = (choices & 8) != 0 ? 2U : 0U,
                                  .lease = (choices & 16) != 0 ? 10us : 0us});
  if (!group) std::abort();
  const std::string file = group_file();
  {
    auto publisher = topic->publisher();
    auto before = group->join({.spin = 0ns, .patience = 0ns});
    if (!publisher || !before) std::abort();
    fill(*publisher);
    (void)before->receive(Deadline::immediate());  // Now it holds one record and has claimed more.
    scribble(input, file);
    if ((choices & 32) != 0) scribble(input, (choices & 64) != 0 ? "records" : "control");
    work(*before, input, file);
    fill(*publisher);
    if (auto other = group->join({.spin = 0ns, .patience = 0ns})) {
      work(*other, input, file);
      fill(*publisher);
      work(*before, input, file);
    }
  }
  (void)group->info();
  (void)group->released();
  (void)group->seek(leat::From::beginning);
  if (auto again = leat::Topic::open("t", Deadline::immediate(), directory())) {
    if (auto found = again->find_group("g")) {
      (void)found->info();
      if (auto member = found->join({.spin = 0ns, .patience = 0ns})) work(*member, input, file);
    }
    (void)again->group_names();
    (void)again->delete_group("g", (choices & 128) != 0);
    if (auto publisher = again->publisher()) fill(*publisher);
  }
  (void)leat::Topic::delete_topic("t", {.force = true, .directory = directory()});
  return 0;
}
