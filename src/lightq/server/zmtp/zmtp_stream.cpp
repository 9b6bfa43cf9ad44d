#include "zmtp_stream.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

namespace leat::broker::lightq {
namespace {

// Between signs of life.
constexpr std::chrono::milliseconds kSoon{100};
constexpr std::chrono::milliseconds kSeldom{1000};

}  // namespace

void ZmtpStream::begin() {
  start_clock(authenticator_.handshake_time, "no login in time");
  Stream::begin();
}

void ZmtpStream::greet() {
  if (!std::exchange(has_started_, true)) session_.start(out());
}

std::size_t ZmtpStream::on_bytes(Bytes& bytes) {
  const std::size_t needed = take(bytes);
  if (session_.silence_limit().count() != 0) watch_silence();
  return needed;
}

// A producer whose topic is full may wait for long, and its PINGs lie behind messages that are not read. libzmq would take
// the broker for dead, and connect and send again, with other messages in between.
//
// Few clients have heartbeats, and signs for all others cost CPU. So a client that has sent no PING gets signs more and more
// seldom, up to one a second, until something arrives from it again, which may be a PING.
void ZmtpStream::on_paused() {
  // out() may hold the PONG for a PING that came before the last message.
  if (unsent() != 0) flush();
  if (!session_.may_ping()) return;
  if (life_ == nullptr) life_ = std::make_unique<Timer>(loop());
  if (!life_->is_running() || life_after_ != kSoon) show_life(kSoon);
}

void ZmtpStream::show_life(std::chrono::milliseconds after) {
  life_after_ = after;
  life_->start(after, [this] {
    if (!is_open() || !is_paused() || has_hung_up()) return;
    if (unsent() == 0 && may_show_life()) {
      session_.append_sign_of_life(out());
      flush();
    }
    const std::size_t unread = unread_bytes();
    const bool has_sent = std::exchange(unread_then_, unread) != unread;
    show_life(session_.has_pinged() || has_sent ? kSoon : std::min(life_after_ * 3 / 2, kSeldom));
  });
}

// A client that has sent everything and closed must get no sign: its kernel would answer with a reset, and drop what it
// could not deliver yet.
bool ZmtpStream::may_show_life() {
  // With less than this unread, the kernel still takes what the client sends, so it would have seen the client's end.
  constexpr std::size_t kTakesMore = 16 * 1024;
  if (unread_bytes() < kTakesMore) return true;
  const ClientEnd end = client_end(descriptor());
  // Most clients on other machines have no heartbeats, unless they have sent a PING.
  return end == ClientEnd::open || (end == ClientEnd::unknown && session_.has_pinged());
}

void ZmtpStream::watch_silence() {
  if (silence_ == nullptr) silence_ = std::make_unique<PatientTimer>(loop());
  if (silence_->is_running()) return;
  heard_at_ = Clock::now();
  check_silence();
}

void ZmtpStream::check_silence() {
  const auto step = session_.silence_limit() / 4;
  check_at_ = Clock::now() + step;
  heard_bytes_ = received_bytes();
  silence_->start(step, [this] { on_silence(); });
}

// What is not read cannot be heard. And a broker that looks late has stood still itself, perhaps together with the client: it
// gives the client some time of its own.
void ZmtpStream::on_silence() {
  const std::chrono::milliseconds limit = session_.silence_limit();
  if (!is_open() || limit.count() == 0) return;
  const auto now = Clock::now();
  constexpr std::chrono::milliseconds kMoment{100};
  if (heard_bytes_ != received_bytes() || is_paused() || has_unread()) heard_at_ = now;
  if (now - check_at_ > kMoment)
    heard_at_ = std::max(heard_at_, now - limit + std::min(limit, kMoment));
  if (now - heard_at_ < limit) return check_silence();
  close_later("sent nothing for as long as it said it might");
}

std::size_t ZmtpStream::take(Bytes& bytes) {
  using Kind = zmtp::Event::Kind;
  greet();
  for (;;) {
    const zmtp::Event event = session_.next(bytes, out());
    switch (event.kind) {
      case Kind::message:
        if (!on_message(event.body, event.more)) return kPause;
        continue;
      case Kind::need_more:
        if (!on_idle()) return kPause;
        if (unsent() != 0) flush();
        return session_.needed();
      case Kind::subscribe: on_subscription(event.body, true); continue;
      case Kind::unsubscribe: on_subscription(event.body, false); continue;
      case Kind::ready:
        if (!let_in()) return kPause;
        continue;
      case Kind::credentials: check_credentials(); return kPause;
      case Kind::waiting: return kPause;
      case Kind::failed:
        (void)on_idle();  // What came before counts.
        finish(session_.error());
        return kPause;
    }
  }
}

void ZmtpStream::check_credentials() {
  has_password_ = true;
  const zmtp::Credentials& credentials = session_.credentials();
  user_ = credentials.user;
  version_ = authenticator_.version_of(user_);
  Secret password{credentials.password};
  // It must not stay in the buffer, nor in what is moved about there.
  sodium_memzero(const_cast<char*>(credentials.password.data()), credentials.password.size());
  keep_place(true);
  authenticator_.check({Origin{peer()}, true, is_there()}, user_, std::move(password),
                       [weak = weak_from_this(), this](Logins::Verdict verdict) {
                         if (const auto self = weak.lock()) on_verdict(verdict);
                       });
}

void ZmtpStream::on_verdict(Logins::Verdict verdict) {
  if (!is_open()) return;
  keep_place(false);
  // Not within on_bytes(), which may be further up.
  boost::asio::post(loop(), [self = shared_from_this(), this, verdict] {
    if (verdict == Logins::Verdict::right) {
      session_.accept(out());
      flush();
      resume();
    } else if (verdict == Logins::Verdict::wrong) {
      session_.refuse(zmtp::Refusal::wrong_credentials, out());
      finish("wrong user or password");
    } else {
      close_later("too many wrong passwords, or too many at once");
    }
  });
}

bool ZmtpStream::let_in() {
  if (has_password_) {
    if (authenticator_.version_of(user_) != version_) {
      close_later("its password or right was changed meanwhile");
      return false;
    }
    if (version_ == 0) user_.clear();  // The topic is open: nobody has looked at the password.
  } else {
    const auto principal = authenticator_.authorize_address(address());
    if (!principal) {
      close_later("came without a password, and without having joined");
      return false;
    }
    user_ = principal->user;
    version_ = principal->version;
  }
  stop_clock();
  return on_ready();
}

}  // namespace leat::broker::lightq
