// Stopping on SIGTERM: forwards records from the topic `incoming` to the topic `outgoing` until it is told to end.
//
//     clean_stop & leat pub incoming hello && leat sub outgoing --from beginning --count 1; kill -TERM $!
//
// A signal requests a stop, and the stop ends every wait: for records, and for room in a full topic. What was not published
// is not acknowledged, and the next process that starts goes on with it: nothing is lost, and nothing is forwarded twice.
#include <pthread.h>

#include <csignal>
#include <cstdio>
#include <stop_token>
#include <thread>

#include "leat/leat.hpp"

namespace {

int fail(const char* what, leat::Error error) {
  std::fprintf(stderr, "%s: %s\n", what, leat::describe(error).c_str());
  return 1;
}

int forward(const std::stop_token& stop) {
  auto incoming = leat::Topic::open_or_create("incoming");
  if (!incoming) return fail("cannot open incoming", incoming.error());
  auto outgoing = leat::Topic::open_or_create("outgoing");
  if (!outgoing) return fail("cannot open outgoing", outgoing.error());
  auto group = incoming->group("forwarder", {.from = leat::From::beginning});
  if (!group) return fail("cannot open the group", group.error());
  auto member = group->join();
  if (!member) return fail("cannot join the group", member.error());
  auto publisher = outgoing->publisher();
  if (!publisher) return fail("cannot publish", publisher.error());
  while (!stop.stop_requested()) {  // Receiving and publishing do not look unless they wait.
    auto delivery = member->receive(leat::Deadline::never(), stop);
    if (!delivery && delivery.error() == leat::Errc::stopped) break;
    if (!delivery) return fail("cannot receive", delivery.error());
    auto sent = publisher->publish(delivery->record.value, leat::Deadline::never(), stop);
    if (!sent && sent.error() == leat::Errc::stopped) break;
    if (!sent) return fail("cannot publish", sent.error());
    if (auto done = member->acknowledge(*delivery); !done)
      return fail("cannot acknowledge", done.error());
  }
  return 0;
}

}  // namespace

int main(int argc, char**) {
  if (argc != 1) return std::fputs("usage: clean_stop\n", stderr), 2;
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  // Before any other thread starts, so that the signals are blocked in all of them, and only sigwait() gets them.
  if (pthread_sigmask(SIG_BLOCK, &ends, nullptr) != 0) return 1;
  std::stop_source stop;
  std::jthread watcher{[&] {
    int number = 0;
    (void)sigwait(&ends, &number);
    stop.request_stop();
  }};
  const int code = forward(stop.get_token());
  if (!stop.stop_requested()) pthread_kill(watcher.native_handle(), SIGTERM);  // After an error.
  return code;
}
