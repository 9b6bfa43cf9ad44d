// The same with libzmq's own clients, over TCP. If these failed, we would speak a ZMTP that only we understand.
//
// One thread: libzmq sends and receives in its background, while the test serves its connections until
// what it waits for is there.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lightq/server/zmtp/zmtp.hpp"

// libzmq is not built for ThreadSanitizer, which therefore sees the data but not the order of its threads.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() { return "called_from_lib:libzmq.so\n"; }

namespace leat::broker::zmtp {
namespace {

using namespace std::string_literals;
using namespace std::chrono_literals;
using Events = std::vector<std::string>;
using Clock = std::chrono::steady_clock;

// A port of 127.0.0.1 and the connections of its clients.
class Server {
 public:
  explicit Server(Role role, bool allows_null = true) {
    rules_.role = role;
    rules_.allows_null = allows_null;
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof(address);
    if (::bind(listener_, any, size) != 0 || ::listen(listener_, 16) != 0 ||
        ::getsockname(listener_, any, &size) != 0) {
      ADD_FAILURE() << "no port: " << std::strerror(errno);
    }
    endpoint = "tcp://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  ~Server() {
    for (const auto& one : connections_) ::close(one->fd);
    ::close(listener_);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Serves all connections until that is true, or gives up after ten seconds.
  void serve_until(const std::function<bool()>& is_done) {
    const auto end = Clock::now() + 10s;
    while (!is_done()) {
      ASSERT_LT(Clock::now(), end) << "nothing came; " << events.size() << " events before";
      std::vector<pollfd> waited{{listener_, POLLIN, 0}};
      for (const auto& one : connections_) waited.push_back({one->fd, POLLIN, 0});
      ::poll(waited.data(), waited.size(), 5);
      for (std::size_t i = 1; i < waited.size(); ++i) {
        if (waited[i].revents != 0) receive(*connections_[i - 1]);
      }
      std::erase_if(connections_, [](const auto& one) { return one->fd < 0; });
      if (waited[0].revents != 0) connect();
    }
  }
  void serve_until_events(std::size_t count) {
    serve_until([&] { return events.size() >= count; });
  }
  void serve_for(std::chrono::milliseconds time) {
    serve_until([end = Clock::now() + time] { return Clock::now() >= end; });
  }

  void send(const std::string& bytes) {
    for (const auto& one : connections_) write(*one, bytes);
  }
  void send_message(const std::string& first, const std::optional<std::string>& second = {}) {
    std::string bytes;
    second ? append_message(bytes, first, *second) : append_message(bytes, first);
    send(bytes);
  }

  std::string endpoint;
  Events events;  // "ready PUSH", "message …", …
  int accepted = 0;
  bool says_version_3_1 = false;  // With 3.1, libzmq subscribes by commands.
  std::size_t pongs = 0;

 private:
  struct Connection {
    explicit Connection(int socket, const Rules& rules) : fd{socket}, session{rules} {}
    int fd;
    Session session;
    std::string received;
    std::string request;
  };

  void connect() {
    connections_.push_back(
        std::make_unique<Connection>(::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC), rules_));
    ++accepted;
    std::string out;
    connections_.back()->session.start(out);
    if (says_version_3_1) out[11] = 1;
    write(*connections_.back(), out);
  }

  static void write(Connection& to, const std::string& bytes) {
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t n = ::send(to.fd, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
      if (n < 0) return;  // The client went away.
      done += static_cast<std::size_t>(n);
    }
  }

  void receive(Connection& from) {
    std::string more(64 * 1024, '\0');
    const ssize_t n = ::recv(from.fd, more.data(), more.size(), 0);
    if (n <= 0) return close(from);
    from.received.append(more, 0, static_cast<std::size_t>(n));
    Bytes rest{from.received};
    if (rest.size() < from.session.needed()) return;
    std::string out;
    bool has_failed = false;
    for (bool goes_on = true; goes_on;) {
      const Event event = from.session.next(rest, out);
      goes_on = event.kind != Event::Kind::need_more && event.kind != Event::Kind::failed;
      has_failed = event.kind == Event::Kind::failed;
      on_event(from, event, out);
    }
    from.received.erase(0, from.received.size() - rest.size());
    if (out.find("\4PONG") != std::string::npos) ++pongs;
    write(from, out);
    if (has_failed) close(from);
  }

  void on_event(Connection& from, const Event& event, std::string& out) {
    const std::string body{event.body.text()};
    switch (event.kind) {
      case Event::Kind::need_more: return;
      case Event::Kind::credentials:
        if (from.session.credentials().user == "me" &&
            from.session.credentials().password == "right") {
          return from.session.accept(out);
        }
        return from.session.refuse(Refusal::wrong_credentials, out);
      case Event::Kind::ready:
        return events.push_back("ready " + std::string{from.session.peer().socket_type});
      case Event::Kind::message:
        events.push_back((event.more ? "part " : "message ") + body);
        from.request += body + "|";
        if (rules_.role == Role::rep && !event.more) {
          from.session.reply(std::exchange(from.request, {}) + "answered", out);
        }
        return;
      case Event::Kind::subscribe: return events.push_back("subscribe " + body);
      case Event::Kind::unsubscribe: return events.push_back("unsubscribe " + body);
      case Event::Kind::failed: return events.push_back("failed " + from.session.error());
      case Event::Kind::waiting: ADD_FAILURE() << "everything is answered at once"; return;
    }
  }

  static void close(Connection& one) {
    ::close(one.fd);
    one.fd = -1;
  }

  Rules rules_{};
  int listener_ = -1;
  std::vector<std::unique_ptr<Connection>> connections_;
};

// A socket of libzmq with a context of its own, and what its monitor says.
class Client {
 public:
  explicit Client(int type) : context_{::zmq_ctx_new()}, socket_{::zmq_socket(context_, type)} {
    set(ZMQ_LINGER, 0);
    set(ZMQ_RCVTIMEO, 10'000);
    set(ZMQ_RECONNECT_IVL, 20);
    ::zmq_socket_monitor(socket_, "inproc://monitor", ZMQ_EVENT_ALL);
    monitor_ = ::zmq_socket(context_, ZMQ_PAIR);
    ::zmq_connect(monitor_, "inproc://monitor");
  }
  ~Client() {
    ::zmq_close(monitor_);
    ::zmq_close(socket_);
    ::zmq_ctx_term(context_);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  Client& set(int option, int value) {
    EXPECT_EQ(::zmq_setsockopt(socket_, option, &value, sizeof(value)), 0);
    return *this;
  }
  Client& set(int option, const std::string& value) {
    EXPECT_EQ(::zmq_setsockopt(socket_, option, value.data(), value.size()), 0);
    return *this;
  }
  Client& login(const std::string& user, const std::string& password) {
    return set(ZMQ_PLAIN_USERNAME, user).set(ZMQ_PLAIN_PASSWORD, password);
  }
  Client& connect(const Server& server) {
    EXPECT_EQ(::zmq_connect(socket_, server.endpoint.c_str()), 0);
    return *this;
  }
  void send(const std::string& body, int flags = 0) {
    EXPECT_EQ(::zmq_send(socket_, body.data(), body.size(), flags | ZMQ_DONTWAIT),
              static_cast<int>(body.size()));
  }
  // With "+" at the end if other parts follow.
  std::string receive() { return receive_from(socket_); }

  // Whether the monitor has said that, so far; and with which value.
  bool has_seen(int wanted, std::uint32_t wanted_value) {
    zmq_pollitem_t item{monitor_, 0, ZMQ_POLLIN, 0};
    while (::zmq_poll(&item, 1, 0) == 1) {
      const std::string frame = receive_from(monitor_);  // Event and value, then the address.
      receive_from(monitor_);
      std::uint16_t event = 0;
      std::uint32_t value = 0;
      std::memcpy(&event, frame.data(), sizeof(event));
      std::memcpy(&value, frame.data() + sizeof(event), sizeof(value));
      seen_.emplace_back(event, value);
    }
    return std::ranges::find(seen_, std::pair<int, std::uint32_t>{wanted, wanted_value}) !=
           seen_.end();
  }

 private:
  static std::string receive_from(void* socket) {
    zmq_msg_t message;
    ::zmq_msg_init(&message);
    const int size = ::zmq_msg_recv(&message, socket, 0);
    EXPECT_GE(size, 0) << ::zmq_strerror(errno);
    std::string body;
    if (size >= 0)
      body.assign(static_cast<const char*>(::zmq_msg_data(&message)), ::zmq_msg_size(&message));
    if (::zmq_msg_more(&message) != 0) body += "+";
    ::zmq_msg_close(&message);
    return body;
  }

  void* context_;
  void* socket_;
  void* monitor_ = nullptr;
  std::vector<std::pair<int, std::uint32_t>> seen_;
};

const std::string kLarge(1 << 20, 'x');  // The default limit.

TEST(ZmtpLibzmq, PushSendsMessagesOfAllKinds) {
  Server server{Role::pull};
  Client push{ZMQ_PUSH};
  push.connect(server);
  push.send("");
  push.send("a");
  push.send(std::string(255, 'b'));
  push.send(std::string(256, 'c'));
  push.send("1", ZMQ_SNDMORE);
  push.send("", ZMQ_SNDMORE);
  push.send("3");
  push.send(kLarge);
  push.send("end");
  server.serve_until_events(10);
  EXPECT_EQ(server.events,
            (Events{"ready PUSH", "message ", "message a", "message " + std::string(255, 'b'),
                    "message " + std::string(256, 'c'), "part 1", "part ", "message 3",
                    "message " + kLarge, "message end"}));
}

TEST(ZmtpLibzmq, PullReceivesMessagesOfAllKinds) {
  Server server{Role::push};
  Client pull{ZMQ_PULL};
  pull.connect(server);
  server.serve_until_events(1);
  EXPECT_EQ(server.events, Events{"ready PULL"});
  for (const std::string& body :
       {""s, "a"s, std::string(255, 'b'), std::string(256, 'c'), kLarge}) {
    server.send_message(body);
    EXPECT_EQ(pull.receive(), body);
  }
  server.send_message("1", "2");
  EXPECT_EQ(pull.receive(), "1+");
  EXPECT_EQ(pull.receive(), "2");
}

TEST(ZmtpLibzmq, SubSubscribesByMessagesAndByCommands) {
  for (const bool by_commands : {false, true}) {
    Server server{Role::pub};
    server.says_version_3_1 = by_commands;
    Client sub{ZMQ_SUB};
    sub.set(ZMQ_SUBSCRIBE, "topic"s).login("me", "right").connect(server);
    server.serve_until_events(2);
    sub.set(ZMQ_SUBSCRIBE, ""s).set(ZMQ_UNSUBSCRIBE, "topic"s);
    server.serve_until_events(4);
    EXPECT_EQ(server.events,
              (Events{"ready SUB", "subscribe topic", "subscribe ", "unsubscribe topic"}));
    server.send_message("topic", kLarge);
    EXPECT_EQ(sub.receive(), "topic+");
    EXPECT_EQ(sub.receive(), kLarge);
  }
}

TEST(ZmtpLibzmq, ReqGetsItsReplies) {
  Server server{Role::rep};
  Client req{ZMQ_REQ};
  req.set(ZMQ_REQ_CORRELATE, 1);  // With an address before the empty frame.
  req.connect(server);
  for (std::size_t i = 0; i < 3; ++i) {
    req.send(std::to_string(i), ZMQ_SNDMORE);
    req.send("a part that is skipped");
    server.serve_until_events(3 + 2 * i);
    EXPECT_EQ(req.receive(), std::to_string(i) + "||answered");
  }
  Client plain{ZMQ_REQ};
  plain.login("me", "right").connect(server);
  plain.send(kLarge);
  server.serve_until_events(9);
  EXPECT_EQ(plain.receive(), kLarge + "|answered");
}

TEST(ZmtpLibzmq, PlainAndNullComeToTheSamePort) {
  Server server{Role::pull};
  Client with{ZMQ_PUSH};
  with.login("me", "right").connect(server);
  with.send("a");
  server.serve_until_events(2);
  Client without{ZMQ_PUSH};
  without.connect(server);
  without.send("b");
  server.serve_until_events(4);
  EXPECT_EQ(server.events, (Events{"ready PUSH", "message a", "ready PUSH", "message b"}));
  EXPECT_TRUE(with.has_seen(ZMQ_EVENT_HANDSHAKE_SUCCEEDED, 0));
  EXPECT_TRUE(without.has_seen(ZMQ_EVENT_HANDSHAKE_SUCCEEDED, 0));
}

TEST(ZmtpLibzmq, WrongPasswordIsAFailedLoginAndNotTriedAgain) {
  Server server{Role::pull};
  Client push{ZMQ_PUSH};
  push.login("me", "wrong").connect(server);
  push.send("a");
  server.serve_until([&] { return push.has_seen(ZMQ_EVENT_HANDSHAKE_FAILED_AUTH, 400); });
  server.serve_for(200ms);
  EXPECT_EQ(server.events, Events{"failed wrong user or password"});
  EXPECT_EQ(server.accepted, 1);
}

TEST(ZmtpLibzmq, NullWherePlainIsNeededIsAMismatchAndNotTriedAgain) {
  Server server{Role::pull, false};
  Client push{ZMQ_PUSH};
  push.connect(server);
  server.serve_until([&] {
    return push.has_seen(ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL,
                         ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH);
  });
  server.serve_for(200ms);
  EXPECT_EQ(server.accepted, 1);
}

TEST(ZmtpLibzmq, WrongSocketIsNotTriedAgain) {
  Server server{Role::pull};
  Client sub{ZMQ_SUB};
  sub.connect(server);
  server.serve_until_events(1);
  server.serve_for(200ms);
  EXPECT_EQ(server.events,
            Events{"failed a socket of type SUB cannot use this port, which is for PUSH"});
  EXPECT_EQ(server.accepted, 1);
}

// Without our answers, libzmq would cut the connection after a second.
TEST(ZmtpLibzmq, HeartbeatsKeepAnIdleConnection) {
  for (const bool is_push : {false, true}) {
    Server server{is_push ? Role::pull : Role::push};
    Client client{is_push ? ZMQ_PUSH : ZMQ_PULL};
    client.set(ZMQ_HEARTBEAT_IVL, 50).set(ZMQ_HEARTBEAT_TIMEOUT, 1000).set(ZMQ_HEARTBEAT_TTL, 5000);
    client.login("me", "right").connect(server);
    server.serve_for(1300ms);
    EXPECT_GT(server.pongs, 1U);
    if (is_push) {
      client.send("still there");
      server.serve_until_events(2);
      EXPECT_EQ(server.events.back(), "message still there");
    } else {
      server.send_message("still there");
      EXPECT_EQ(client.receive(), "still there");
    }
    EXPECT_EQ(server.accepted, 1);
  }
}

}  // namespace
}  // namespace leat::broker::zmtp
