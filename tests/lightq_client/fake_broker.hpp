// The other end of a connection, for tests: says what a broker would never say.
//
//     FakeBroker broker;
//     Admin admin{broker.connection()};
//     broker.say("\0\0\0\2{}"s);
//     EXPECT_EQ(code_of(admin.ask(…)), Errc::corrupt);
//
// It has a socket pair, whose buffers hold what a test says before anybody reads.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <string>
#include <string_view>

#include "lightq/client/data.hpp"
#include "lightq/wire/raw_frame.hpp"

namespace leat::lightq {

using namespace std::chrono_literals;

class FakeBroker {
 public:
  FakeBroker() {
    int both[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both) != 0) std::abort();
    mine_ = detail::Fd{both[0]};
    theirs_ = detail::Fd{both[1]};
  }

  Connection connection() { return {std::move(theirs_), "the broker"}; }

  void say(std::string_view bytes) {
    ASSERT_EQ(::send(mine_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<::ssize_t>(bytes.size()));
  }
  void say_frame(std::string_view payload) {
    std::string bytes;
    append_frame(bytes, Bytes{payload});
    say(bytes);
  }
  void say_count(std::uint64_t count) {
    std::string bytes;
    append_number(bytes, count);
    say(bytes);
  }
  // JSON behind its length, as the administration says it.
  void answer(std::string_view body) {
    std::string bytes;
    for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(body.size() >> shift);
    say(bytes.append(body));
  }
  // What has come until now.
  std::string heard() {
    std::string bytes;
    char piece[4096];
    for (::ssize_t count; (count = ::recv(mine_.get(), piece, sizeof piece, MSG_DONTWAIT)) > 0;)
      bytes.append(piece, static_cast<std::size_t>(count));
    return bytes;
  }
  void leave() { mine_ = detail::Fd{}; }
  void end_sending() { ::shutdown(mine_.get(), SHUT_WR); }
  void shrink_buffers() {
    const int size = 4096;
    ::setsockopt(theirs_.get(), SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  }

 private:
  detail::Fd mine_;
  detail::Fd theirs_;
};

inline const Patience kSoon{Deadline{20ms}};
inline const Patience kPatient{Deadline{10s}};

// The code of an outcome's problem; ok: it has a value.
template <class T>
Errc code_of(const Outcome<T>& outcome) {
  if (outcome) return Errc::ok;
  EXPECT_NE(outcome.problem().sentence, "");
  return outcome.problem().code;
}

// The sentence of it.
template <class T>
std::string sentence_of(const Outcome<T>& outcome) {
  return outcome ? std::string{} : outcome.problem().sentence;
}

// The value, without which the test cannot go on.
template <class T>
T must(Outcome<T> outcome) {
  EXPECT_EQ(sentence_of(outcome), "");
  return std::move(*outcome);
}
inline void must(const Outcome<void>& outcome) { EXPECT_EQ(sentence_of(outcome), ""); }

}  // namespace leat::lightq
