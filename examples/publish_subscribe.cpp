// The README's five lines as a program: one process publishes a record and reads it back.
#include <iostream>

#include "leat/leat.hpp"

int main() {
  auto topic = leat::Topic::open_or_create("orders");
  auto publisher = topic->publisher();
  auto offset = publisher->publish("hello");
  auto subscriber = topic->subscriber({.from = leat::From::beginning});
  auto count = subscriber->poll(100, [](const leat::Record& r) { std::cout << r.text() << '\n'; });
  return offset && count && *count == *offset + 1 ? 0 : 1;
}
