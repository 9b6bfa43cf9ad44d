// Damaged topic files. The fuzzer overwrites bytes of a small topic's control and records files,
// before or after processes have attached. Every call must return data or an error. If this failed,
// a process that damages a topic's files could crash other processes or make them loop forever.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "leat/leat.hpp"
#include "scribble.hpp"

namespace {

using leat::Deadline;

using leat::fuzz::directory;
using leat::fuzz::Input;
using leat::fuzz::scribble;

void fill(leat::Publisher& publisher) {
  const std::array<leat::Header, 2> headers = {{{"name", "value"}, {"", ""}}};
  for (int i = 0; i < 20; ++i) {
    (void)publisher.publish(std::string(static_cast<std::size_t>(i) * 37, 'x'),
                            Deadline::immediate());
    (void)publisher.publish({.key = "key", .headers = headers, .value = "value"},
                            Deadline::immediate());
    auto batch = publisher.batch();
    if (batch && batch->add("one") && batch->add({.key = "two", .value = "2"})) {
      (void)batch->commit(Deadline::immediate());
    }
    { auto dropped = publisher.try_claim(10); }
  }
}

std::size_t sum = 0;  // Makes sure that every byte is read.

void read(leat::Subscriber& subscriber) {
  for (int i = 0; i < 2000; ++i) {
    auto count = subscriber.poll(10, [](const leat::Record& record) {
      for (const std::byte byte : record.value) sum += std::to_integer<std::size_t>(byte);
      for (const std::byte byte : record.key) sum += std::to_integer<std::size_t>(byte);
      for (const leat::Header header : record.headers)
        sum += header.name.size() + header.value.size();
    });
    if (!count || (*count == 0 && i > 1100)) return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input{data, size};
  const auto choices = input.take(1);
  std::filesystem::remove_all(directory());
  auto topic = leat::Topic::create(
      "t", {.capacity_bytes = 4 * 4096,
            .segment_bytes = 4096,
            .policy = (choices & 1) != 0 ? leat::Policy::overwrite : leat::Policy::block,
            .timestamps = (choices & 2) != 0,
            .participants = 4,
            .directory = directory()});
  if (!topic) std::abort();
  std::optional<leat::Publisher> before;
  std::optional<leat::Subscriber> reader_before;
  {
    auto publisher = topic->publisher({.exclusive = (choices & 4) != 0});
    auto subscriber = topic->subscriber(
        {.from = leat::From::beginning, .gating = (choices & 9) == 8, .patience = {}});
    if (!publisher || !subscriber) std::abort();
    fill(*publisher);
    if ((choices & 16) != 0) before.emplace(std::move(*publisher));
    if ((choices & 32) != 0) reader_before.emplace(std::move(*subscriber));
  }
  scribble(input, (choices & 64) != 0 ? "records" : "control");
  scribble(input, (choices & 128) != 0 ? "control" : "records");

  if (reader_before) read(*reader_before);
  if (before) fill(*before);
  if (auto again = leat::Topic::open("t", Deadline::immediate(), directory())) {
    (void)again->info();
    for (const bool gating : {false, true}) {
      auto subscriber = again->subscriber(
          {.from = leat::From::beginning, .gating = gating, .spin = {}, .patience = {}});
      if (!subscriber) continue;
      read(*subscriber);
      (void)subscriber->receive(Deadline::immediate());
    }
    if (auto publisher = again->publisher()) fill(*publisher);
  }
  (void)leat::Topic::delete_topic("t", {.force = true, .directory = directory()});
  return 0;
}
