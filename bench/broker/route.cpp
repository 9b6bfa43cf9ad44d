#include "route.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "bench/harness/clock.hpp"

namespace leat::bench::broker {
namespace {

template <std::size_t N>
void copy_to(char (&place)[N], const std::string& text) {
  if (text.size() >= N) throw Failure(fmt::format("'{}' is too long", text));
  std::memcpy(place, text.c_str(), text.size() + 1);
}

std::uint64_t cpu_ns_of(const Child& child) {
  clockid_t clock{};
  return ::clock_getcpuclockid(child.pid(), &clock) == 0 ? read_clock(clock) : 0;
}

[[noreturn]] void copy_messages(ZeromqSocket& from, ZeromqSocket& to) {
  std::vector<std::byte> copy;
  for (;;) {
    from.receive(1, std::chrono::seconds{1}, [&](std::span<const std::byte> message) {
      copy.assign(message.begin(), message.end());
      to.send(copy);
    });
  }
}

}  // namespace

void Direct::open_consumer(ZeromqSocket& pull, std::uint32_t index) {
  copy_to((*consumers_)[index].uri, pull.bind());
}

void Direct::open_producer(ZeromqSocket& push) {
  for (const Text& text : *consumers_) {
    if (text.uri[0] != '\0') push.connect({.uri = text.uri});
  }
}

StandIn::StandIn() {
  child_ = std::make_unique<Child>("the stand-in", kAnyCpu, [this] {
    ZeromqSocket from{ZMQ_PULL};
    ZeromqSocket to{ZMQ_PUSH};
    copy_to(board_->producers, from.bind());
    copy_to(board_->consumers, to.bind());
    board_->is_ready.store(true, std::memory_order_release);  // Pairs with the acquire below.
    copy_messages(from, to);
  });
  while (!board_->is_ready.load(std::memory_order_acquire)) {
    if (child_->has_ended()) child_->check_end();
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
}

void StandIn::open_consumer(ZeromqSocket& pull, std::uint32_t /*index*/) {
  pull.connect({.uri = board_->consumers});
}

void StandIn::open_producer(ZeromqSocket& push) { push.connect({.uri = board_->producers}); }

std::uint64_t StandIn::cpu_ns() const { return cpu_ns_of(*child_); }
std::uint64_t ServedTopic::cpu_ns() const { return cpu_ns_of(*child_); }

}  // namespace leat::bench::broker
