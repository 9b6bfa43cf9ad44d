#include "broker/lightq/zmtp_stream.hpp"

#include <boost/asio/post.hpp>
#include <utility>

namespace leat::broker::lightq {

void ZmtpStream::begin() {
  start_clock(gate_.handshake_time, "no login in time");
  Stream::begin();
}

void ZmtpStream::greet() {
  if (!std::exchange(has_started_, true)) session_.start(out());
}

std::size_t ZmtpStream::on_bytes(Bytes& bytes) {
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
  version_ = gate_.version_of(user_);
  Secret password{credentials.password};
  // It must not stay in the buffer, nor in what is moved about there.
  sodium_memzero(const_cast<char*>(credentials.password.data()), credentials.password.size());
  gate_.check(Origin{peer()}, user_, std::move(password),
              [weak = weak_from_this(), this](Logins::Verdict verdict) {
                if (const auto self = weak.lock()) on_verdict(verdict);
              });
}

void ZmtpStream::on_verdict(Logins::Verdict verdict) {
  if (!is_open()) return;
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
    if (gate_.version_of(user_) != version_) {
      close_later("its password or right was changed meanwhile");
      return false;
    }
    if (version_ == 0) user_.clear();  // The topic is open: nobody has looked at the password.
  } else {
    const auto entry = gate_.welcome(address());
    if (!entry) {
      close_later("came without a password, and without having joined");
      return false;
    }
    user_ = entry->user;
    version_ = entry->version;
  }
  stop_clock();
  return on_ready();
}

}  // namespace leat::broker::lightq
