#include <leat/leat.hpp>

#include <iostream>

int main() {
  auto topic = leat::Topic::create("conan-test-package");
  auto publisher = topic->publisher();
  auto subscriber = topic->subscriber({.from = leat::From::beginning});
  publisher->publish("hello").value();
  const auto count =
      subscriber->poll(100, [](const leat::Record& record) { std::cout << record.text() << '\n'; });
  const auto deleted = leat::Topic::delete_topic("conan-test-package", {.force = true});
  return count && *count == 1 && deleted ? 0 : 1;
}
