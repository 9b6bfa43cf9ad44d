#include "raw_stream.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>

#include "lightq_protocol.hpp"

namespace leat::broker::lightq {
namespace {

constexpr std::chrono::milliseconds kSilence{100};

constexpr Encoding kRaw{
    .for_consumer = [](std::string& out,
                       const Record& record) { raw::append_frame(out, record.value); },
    .for_subscriber = [](std::string& out, const std::string& /*topic*/,
                         const Record& record) { raw::append_frame(out, record.value); }};

class RawStream final : public Stream {
 public:
  RawStream(Accepted accepted, TopicPtr topic, RawAuthenticator authenticator)
      : Stream{std::move(accepted)},
        topic_{std::move(topic)},
        authenticator_{std::move(authenticator)} {}

  void begin() override {
    start_clock(authenticator_.handshake_time, "no hello in time");
    if (authenticator_.may_be_silent(address()) &&
        authenticator_.authorize_address(address(), Access::read))
      wait_for_silence();
    Stream::begin();
  }
  void begin_refused(const char* why) override {
    refusal_ = why;
    start_clock(kLinger, why);
    Stream::begin();
  }

 private:
  std::size_t on_bytes(Bytes& bytes) override {
    silence_.reset();
    if (!client_) return on_hello(bytes);
    if (!has_greeted_) {  // No client of LightQ sends anything; this one would think that it is heard.
      close_later("its hello came too late");
      return kPause;
    }
    if (kind_ == raw::Role::producer) return on_messages(bytes);
    if (acknowledges_) return on_counts(bytes);
    bytes = {};  // Such a client has nothing to say.
    return 1;
  }

  // --- Until it is let in ---

  void wait_for_silence() {
    silence_ = std::make_unique<PatientTimer>(loop());
    silence_->start(kSilence, [this] {
      const auto principal = authenticator_.authorize_address(address(), Access::read);
      if (!principal) return;
      open_client({}, *principal, [this](const Outcome<void>& opened) {
        if (!opened) return close(opened.problem().sentence);
        (void)begin_client();  // It pulls.
      });
    });
  }

  std::size_t on_hello(Bytes& bytes) {
    const raw::Frame frame = raw::front_frame(bytes);
    if (frame.length > raw::kMaxHello) return refuse("the first frame is longer than 4096 bytes");
    if (frame.needed != 0) return frame.needed;
    auto hello = raw::parse_hello(frame.payload.text());
    bytes = bytes.subspan(raw::kLengthBytes + frame.length);
    if (!hello) return refuse(hello.problem().sentence);
    if (refusal_ != nullptr) return refuse(refusal_);
    const Access access = hello->role == raw::Role::producer ? Access::write : Access::read;
    const auto principal = hello->token.empty()
                               ? authenticator_.authorize_address(address(), access)
                               : authenticator_.principal_of(hello->token, access);
    if (!principal) return refuse("unauthorized_access");
    has_greeted_ = true;
    open_client(*hello, *principal, [this](const Outcome<void>& opened) {
      if (!opened) return (void)refuse(opened.problem().sentence);
      answer({{"status", "ok"}, {"topic", topic_->name()}});
      if (is_open() && begin_client()) resume();
    });
    return kPause;
  }

  std::size_t refuse(const std::string& why) {
    answer({{"status", "error"}, {"description", why}});
    finish(why);
    return kPause;
  }

  void answer(const nlohmann::json& json) {
    raw::append_frame(out(), Bytes{json.dump()});
    flush();
  }

  void open_client(const raw::Hello& hello, const Principal& principal,
                   std::function<void(const Outcome<void>&)> done) {
    start_clock(authenticator_.handshake_time,
                "its topic could not be opened in time: its disk may be slow");
    kind_ = hello.role;
    acknowledges_ = hello.acknowledges;
    if (kind_ == raw::Role::producer) {
      client_ = std::make_unique<PublishingClient>(*this, *topic_, [this](std::uint64_t count) {
        published_ = count;
        send_count();
      });
    } else if (kind_ == raw::Role::puller) {
      auto puller = std::make_unique<ConsumingClient>(*this, *topic_, TopicUse::consume_own(kGroup),
                                                      kRaw, acknowledges_);
      consumer_ = puller.get();
      client_ = std::move(puller);
    } else {
      client_ = std::make_unique<SubscribingClient>(*this, *topic_, kRaw);
    }
    client_->open(principal, [this, done = std::move(done)](const Outcome<void>& opened) {
      stop_clock();
      done(opened);
    });
  }

  bool begin_client() {
    if (!client_->begin()) return false;
    if (kind_ == raw::Role::subscriber) static_cast<SubscribingClient&>(*client_).listen(true);
    return true;
  }

  // --- Afterwards ---

  std::size_t on_messages(Bytes& bytes) {
    for (;;) {
      const raw::Frame frame = raw::front_frame(bytes);
      if (frame.length > authenticator_.max_message_bytes) {
        const std::string why = fmt::format("a message of {} bytes; the limit is {}", frame.length,
                                            authenticator_.max_message_bytes);
        (void)client_->on_idle();  // What came before counts.
        finish(why);
        return kPause;
      }
      if (frame.needed != 0) return client_->on_idle() ? frame.needed : kPause;
      bytes = bytes.subspan(raw::kLengthBytes + frame.length);
      if (!client_->on_message(frame.payload)) return kPause;
    }
  }

  // A client that does not read is told only the last one.
  void send_count() {
    if (unsent() != 0 || sent_count_ == published_) return;
    append_count();
    flush();
  }
  void append_count() {
    sent_count_ = published_;
    raw::append_number(out(), sent_count_);
  }

  // Only the last one matters.
  std::size_t on_counts(Bytes& bytes) {
    const std::size_t whole = bytes.size() / raw::kCountBytes;
    if (whole != 0) {
      const std::byte* const last = bytes.data() + (whole - 1) * raw::kCountBytes;
      bytes = bytes.subspan(whole * raw::kCountBytes);
      if (!consumer_->on_done(raw::little_endian<std::uint64_t>(last))) {
        close_later("acknowledges messages that it did not get");
        return kPause;
      }
    }
    return raw::kCountBytes;
  }

  void on_sent() override {
    if (client_) client_->on_sent();
    send_count();
  }
  void on_finishing() override {
    leave();
    if (sent_count_ != published_) append_count();  // Behind an earlier one that was not sent yet.
  }
  void on_closed(const std::string& why) override {
    silence_.reset();
    leave();
    spdlog::debug("topic {}: {} left: {}", topic_->name(), peer_name(), why);
  }
  void leave() {
    if (client_) client_->leave();
  }

  TopicPtr topic_;
  RawAuthenticator authenticator_;
  const char* refusal_ = nullptr;          // Why it is not let in, whoever it is.
  std::unique_ptr<PatientTimer> silence_;  // While it may be a client that says nothing.
  bool has_greeted_ = false;
  raw::Role kind_ = raw::Role::puller;
  bool acknowledges_ = false;
  std::unique_ptr<TopicClient> client_;  // Once it is let in.
  ConsumingClient* consumer_ = nullptr;  // If it is one.
  std::uint64_t published_ = 0;          // Of a producer's messages.
  std::uint64_t sent_count_ = 0;
};

}  // namespace

std::shared_ptr<Stream> make_raw_stream(Accepted accepted, TopicPtr topic,
                                        RawAuthenticator authenticator) {
  return std::make_shared<RawStream>(std::move(accepted), std::move(topic),
                                     std::move(authenticator));
}

}  // namespace leat::broker::lightq
