#include "admin_stream.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>

#include "lightq/wire/admin_frame.hpp"

namespace leat::broker::lightq {
namespace {

using leat::lightq::kAdminLengthBytes;

class AdminStream final : public ZmtpStream {
 public:
  AdminStream(Accepted accepted, Admin& admin, const Config& config)
      : ZmtpStream{std::move(accepted),
                   {.role = zmtp::Role::rep,
                    .allows_null = true,
                    .max_message_bytes = config.max_command_bytes},
                   open_authenticator(config)},
        admin_{admin},
        config_{config},
        most_bytes_{config.max_command_bytes},
        client_{std::make_shared<AdminClient>()} {
    client_->peer = peer();
  }

  void begin_refused(const char* why) override {
    refusal_ = why;
    begin();
    start_clock(kLinger, why);
  }

 private:
  // Each command has its own credentials.
  static Authenticator open_authenticator(const Config& config) {
    Authenticator authenticator;
    authenticator.allows_null = true;
    authenticator.handshake_time = config.handshake_time;
    authenticator.authorize_address = [](const Address&) { return Principal{}; };
    authenticator.version_of = [](const std::string&) { return 0; };
    authenticator.check = [](const Logins::Asker&, const std::string&, Secret,
                             const Logins::Done& done) { done(Logins::Verdict::right); };
    return authenticator;
  }

  // Does not greet before: docs/decisions/0029-who-speaks-first.md.
  std::size_t on_bytes(Bytes& bytes) override {
    if (framing_ == Framing::unknown)
      framing_ = zmtp::byte_at(bytes, 0) == 0 ? Framing::length : Framing::zmtp;
    if (framing_ == Framing::length) return on_length(bytes);
    if (refusal_ == nullptr) {
      const std::size_t needed = ZmtpStream::on_bytes(bytes);
      const bool has_part = !bytes.empty() || has_request_ || session().is_within_message();
      if (needed != kPause && has_part) time_command();
      return needed;
    }
    close_later(refusal_);  // Its request waits in libzmq, which comes again.
    return kPause;
  }

  std::size_t on_length(Bytes& bytes) {
    if (!bytes.empty()) time_command();
    if (bytes.size() < kAdminLengthBytes) return kAdminLengthBytes;
    const std::size_t length = leat::lightq::admin_length(bytes.data());
    if (length > most_bytes_) {
      boost::asio::post(loop(), [self = shared_from_this(), this, length] {
        const std::string why =
            fmt::format("a command of {} bytes; the limit is {}", length, most_bytes_);
        leat::lightq::append_admin_frame(out(), error_reply("", why));
        finish(why);
      });
      return kPause;
    }
    if (bytes.size() < kAdminLengthBytes + length) return kAdminLengthBytes + length;
    const Bytes body = bytes.subspan(kAdminLengthBytes, length);
    answer(std::string{body.text()});
    wipe_received(body);
    bytes = bytes.subspan(kAdminLengthBytes + length);
    return kPause;
  }

  bool on_ready() override {
    wait_for_command();
    return true;
  }
  // A command that has begun has as long to arrive as a login: its beginning takes memory.
  void time_command() {
    if (!std::exchange(has_begun_, true))
      start_clock(config_.handshake_time, "its command did not come in time");
  }
  void wait_for_command() {
    has_begun_ = false;
    if (config_.idle_time.count() != 0) start_clock(config_.idle_time, "silent for too long");
  }
  // Further parts of a request are ignored.
  bool on_message(Bytes body, bool more) override {
    if (!has_request_) {
      request_ = std::string{body.text()};
      wipe_received(body);
      has_request_ = true;
    }
    keep_counting(more);
    if (more) return true;
    has_request_ = false;
    answer(std::move(request_));
    return false;
  }

  static void wipe_received(Bytes body) {
    sodium_memzero(const_cast<std::byte*>(body.data()), body.size());
  }

  void answer(std::string request) {
    if (refusal_ != nullptr) return post_reply(error_reply("", refusal_));
    stop_clock();
    client_->is_there = is_there();
    // From now on it may be given up, if its client hangs up and others need its place.
    client_->on_login = [weak = weak_from_this(), this] {
      if (const auto self = weak.lock()) keep_place(false);
    };
    keep_place(true);
    admin_.handle(request, client_, [weak = weak_from_this(), this](std::string reply) {
      const auto self = weak.lock();
      if (self && is_open()) post_reply(std::move(reply));
    });
  }
  // Not within on_bytes(), which may be further up.
  void post_reply(std::string reply) {
    boost::asio::post(
        loop(), [self = shared_from_this(), this, reply = std::move(reply)] { send_reply(reply); });
  }

  void send_reply(const std::string& reply) {
    if (!is_open()) return;
    keep_place(false);
    if (framing_ == Framing::zmtp) {
      session().reply(Bytes{reply}, out());
    } else {
      leat::lightq::append_admin_frame(out(), reply);
    }
    if (refusal_ != nullptr) return finish(refusal_);
    has_replied_ = true;
    flush();
    if (is_open() && unsent() != 0)
      start_clock(config_.handshake_time, "did not take its answer in time");
  }
  // The next command is taken when the client has read the reply to this one.
  void on_sent() override {
    if (!std::exchange(has_replied_, false)) return;
    stop_clock();
    out().shrink_to_fit();  // The connection may be idle for long, and there may be many.
    wait_for_command();
    resume();
  }

  void on_closed(const std::string& why) override {
    client_->close();
    spdlog::debug("admin: {} left: {}", peer_name(), why);
  }

  enum class Framing { unknown, zmtp, length };

  Admin& admin_;
  const Config& config_;
  std::size_t most_bytes_;
  std::shared_ptr<AdminClient> client_;
  const char* refusal_ = nullptr;  // Why no command is done, whatever it is.
  Framing framing_ = Framing::unknown;
  std::string request_;
  bool has_request_ = false;
  // A clock runs for a command; for the first one, since the connection began.
  bool has_begun_ = true;
  bool has_replied_ = false;  // The reply may still be in out().
};

}  // namespace

std::shared_ptr<Stream> make_admin_stream(Accepted accepted, Admin& admin, const Config& config) {
  return std::make_shared<AdminStream>(std::move(accepted), admin, config);
}

}  // namespace leat::broker::lightq
