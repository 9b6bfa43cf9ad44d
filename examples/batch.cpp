// A batch: several records that become visible at the same time, with keys and headers.
#include <array>
#include <cstdio>

#include "leat/leat.hpp"

int main() {
  auto topic = leat::Topic::open_or_create("payments");
  auto subscriber = topic->subscriber();
  auto publisher = topic->publisher();
  const std::array<leat::Header, 1> headers = {{{"currency", "EUR"}}};
  auto batch = publisher->batch();
  for (const char* amount : {"10", "20", "30"}) {
    if (!batch->add({.key = "account 7", .headers = headers, .value = amount})) return 1;
  }
  if (!batch->commit()) return 1;
  auto count = subscriber->poll(10, [](const leat::Record& record) {
    const leat::Header header = *record.headers.begin();
    std::printf("%s: %s %s\n", std::string{record.key.text()}.c_str(),
                std::string{record.text()}.c_str(), std::string{header.value.text()}.c_str());
  });
  return count && *count == 3 ? 0 : 1;
}
