// Three ways to wait: for several topics at once, with epoll, and until a stop is requested.
#include <sys/epoll.h>
#include <unistd.h>

#include <cstdio>
#include <thread>

#include "leat/leat.hpp"

int main() {
  using namespace std::chrono_literals;
  auto orders = leat::Topic::open_or_create("orders");
  auto trades = leat::Topic::open_or_create("trades");
  auto from_orders = orders->subscriber();
  auto from_trades = trades->subscriber();

  std::jthread writer{[&] {
    auto publisher = trades->publisher();
    (void)publisher->publish("a trade");
  }};
  auto ready = leat::wait_any({&*from_orders, &*from_trades}, 10s);
  if (!ready || *ready != 1) return 1;
  writer.join();

  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  epoll_event interest{.events = EPOLLIN, .data = {}};
  epoll_ctl(epoll, EPOLL_CTL_ADD, *from_trades->wait_fd(), &interest);
  epoll_event event{};
  if (epoll_wait(epoll, &event, 1, 10'000) != 1) return 1;
  close(epoll);
  auto trade = from_trades->receive(1s);
  std::printf("%s\n", std::string{trade->text()}.c_str());

  std::stop_source stop;
  std::jthread stopper{[&] { stop.request_stop(); }};
  auto none = from_orders->receive(leat::Deadline::never(), stop.get_token());
  return none.error() == leat::Errc::stopped ? 0 : 1;
}
