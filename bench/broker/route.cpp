#include "route.hpp"

#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <cstring>
#include <thread>
#include <vector>

#include "bench/harness/clock.hpp"
#include "raw_socket.hpp"

namespace leat::bench::broker {
namespace {

using boost::asio::ip::tcp;

template <std::size_t N>
void copy_to(char (&place)[N], const std::string& text) {
  if (text.size() >= N) throw Failure(fmt::format("'{}' is too long", text));
  std::memcpy(place, text.c_str(), text.size() + 1);
}

[[noreturn]] void copy_messages(ZeromqSocket& from, ZeromqSocket& to) {
  std::vector<std::byte> copy;
  for (;;) {
    const auto message = from.next(std::chrono::seconds{1});
    if (!message) continue;
    copy.assign(message->begin(), message->end());
    to.send(copy);
  }
}

// Until the first one closes.
void copy_bytes(tcp::socket& from, tcp::socket& to) {
  std::vector<std::byte> buffer(64 * 1024);
  for (;;) {
    boost::system::error_code error;
    const std::size_t count = from.read_some(boost::asio::buffer(buffer), error);
    if (error) return;
    boost::asio::write(to, boost::asio::buffer(buffer.data(), count));
  }
}

}  // namespace

std::uint64_t cpu_ns_of(const Child& child) {
  clockid_t clock{};
  return ::clock_getcpuclockid(child.pid(), &clock) == 0 ? read_clock(clock) : 0;
}

// --- Direct --------------------------------------------------------------------------------------

std::unique_ptr<ConsumerEnd> Direct::consumer(std::uint32_t index) {
  auto socket = std::make_unique<ZeromqSocket>(ZMQ_PULL);
  copy_to((*consumers_)[index].uri, socket->bind());
  return socket;
}

std::unique_ptr<ProducerEnd> Direct::producer() {
  auto socket = std::make_unique<ZeromqSocket>(ZMQ_PUSH);
  for (const Text& text : *consumers_) {
    if (text.uri[0] != '\0') socket->connect({.uri = text.uri});
  }
  return socket;
}

// --- StandIn -------------------------------------------------------------------------------------

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

std::unique_ptr<ConsumerEnd> StandIn::consumer(std::uint32_t /*index*/) {
  return connected_socket(ZMQ_PULL, {.uri = board_->consumers});
}

std::unique_ptr<ProducerEnd> StandIn::producer() {
  return connected_socket(ZMQ_PUSH, {.uri = board_->producers});
}

std::uint64_t StandIn::cpu_ns() const { return cpu_ns_of(*child_); }

// --- Relay ---------------------------------------------------------------------------------------

Relay::Relay(bool at_once) : at_once_{at_once} {
  boost::asio::io_context loop;
  const tcp::endpoint any{boost::asio::ip::address_v4::loopback(), 0};
  tcp::acceptor producers{loop, any};
  tcp::acceptor consumers{loop, any};
  producers_ = producers.local_endpoint().port();
  consumers_ = consumers.local_endpoint().port();
  child_ = std::make_unique<Child>("the relay", kAnyCpu, [&] {
    tcp::socket to = consumers.accept();
    tcp::socket from = producers.accept();
    to.set_option(tcp::no_delay{true});
    copy_bytes(from, to);
  });
}

std::unique_ptr<ConsumerEnd> Relay::consumer(std::uint32_t /*index*/) {
  return std::make_unique<RawSocket>(consumers_, "", raw_buffer_bytes(at_once_));
}

std::unique_ptr<ProducerEnd> Relay::producer() {
  return std::make_unique<RawSocket>(producers_, "", raw_buffer_bytes(at_once_));
}

std::uint64_t Relay::cpu_ns() const { return cpu_ns_of(*child_); }

}  // namespace leat::bench::broker
