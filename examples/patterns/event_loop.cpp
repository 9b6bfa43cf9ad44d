// An event loop: two topics, a socket and signals, in one thread that waits for all of them with epoll.
//
//     event_loop /tmp/notes &
//     leat pub orders tea; leat pub trades coffee   # prints each record
//     echo milk | socat - UNIX-SENDTO:/tmp/notes    # publishes each datagram to the topic `notes`
//
// While `notes` is full, datagrams wait in the socket, and everything else goes on.
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "leat/leat.hpp"

namespace {

enum Source : std::uint32_t { kOrders, kTrades, kSocket, kRoom, kSignals };

[[noreturn]] void end(const char* what, const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", what, why.c_str());
  std::exit(1);
}
template <class T>
T need(const char* what, leat::Result<T> result) {
  if (!result) end(what, leat::describe(result.error()));
  return std::move(*result);
}
template <class Number>
Number check(const char* what, Number result) {
  if (result < 0) end(what, std::strerror(errno));
  return result;
}

void watch(int epoll, int fd, Source source) {
  epoll_event interest{.events = EPOLLIN, .data = {.u32 = source}};
  check("epoll_ctl", epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &interest));
}
void ignore(int epoll, int fd) { check("epoll_ctl", epoll_ctl(epoll, EPOLL_CTL_DEL, fd, nullptr)); }

// The signals are blocked in every thread, also those that the library starts later.
int signals_that_end() {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  check("sigprocmask", sigprocmask(SIG_BLOCK, &ends, nullptr));
  return check("signalfd", signalfd(-1, &ends, SFD_CLOEXEC));
}

int datagrams_at(const std::string& path) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  if (path.size() >= sizeof(address.sun_path)) end(path.c_str(), "too long for a socket");
  std::copy(path.begin(), path.end(), address.sun_path);
  const int fd = check("socket", socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  check(path.c_str(), bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)));
  return fd;
}

// Some at a time, for the sake of the others: the descriptor stays readable until poll() returns 0.
void print(const char* topic, leat::Subscriber& subscriber) {
  need(topic, subscriber.poll(100, [&](const leat::Record& record) {
    std::printf("%s: %s\n", topic, std::string{record.text()}.c_str());
  }));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fputs("usage: event_loop SOCKET\n", stderr), 2;
  const int epoll = check("epoll", epoll_create1(EPOLL_CLOEXEC));
  watch(epoll, signals_that_end(), kSignals);
  auto orders = need("orders", need("orders", leat::Topic::open_or_create("orders")).subscriber());
  watch(epoll, need("orders", orders.wait_fd()), kOrders);
  auto trades = need("trades", need("trades", leat::Topic::open_or_create("trades")).subscriber());
  watch(epoll, need("trades", trades.wait_fd()), kTrades);
  auto notes = need("notes", need("notes", leat::Topic::open_or_create("notes")).publisher());
  const int room = need("notes", notes.room_fd());
  const int socket = datagrams_at(argv[1]);
  watch(epoll, socket, kSocket);

  std::string datagram;
  const auto publish = [&] {  // False if the topic is full.
    auto sent = notes.publish(datagram, leat::Deadline::immediate());
    if (!sent && sent.error() == leat::Errc::full) return false;
    need("notes", std::move(sent));
    return true;
  };
  while (true) {
    epoll_event event{};
    const int ready = epoll_wait(epoll, &event, 1, -1);
    if (ready < 0 && errno == EINTR) continue;
    check("epoll_wait", ready);
    switch (event.data.u32) {
      case kOrders: print("orders", orders); break;
      case kTrades: print("trades", trades); break;
      case kSocket:
        datagram.resize(4096);  // A longer one is cut.
        datagram.resize(static_cast<std::size_t>(
            check("recv", recv(socket, datagram.data(), datagram.size(), 0))));
        if (publish()) break;
        ignore(epoll, socket);  // Until there is room.
        watch(epoll, room, kRoom);
        break;
      case kRoom:
        if (!publish()) break;
        ignore(epoll, room);
        watch(epoll, socket, kSocket);
        break;
      case kSignals: return unlink(argv[1]);
    }
    std::fflush(stdout);
  }
}
