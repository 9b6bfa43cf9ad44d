// Writes and reads a payload in place, in shared memory, without copying it.
#include <cstdio>
#include <cstring>

#include "leat/leat.hpp"

int main() {
  auto topic = leat::Topic::open_or_create("frames", {.capacity_bytes = 8 << 20});
  auto subscriber = topic->subscriber();
  auto publisher = topic->publisher({.exclusive = true});
  auto claim = publisher->try_claim(64'000);
  std::memset(claim->payload().data(), 7, 48'000);
  if (!claim->commit(48'000)) return 1;  // Fewer bytes than claimed.
  auto record = subscriber->receive(std::chrono::seconds{1});
  std::printf("%zu bytes, the last is %d\n", record->value.size(), int(record->value.back()));
  return record->value.size() == 48'000 ? 0 : 1;
}
