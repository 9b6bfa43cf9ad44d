// What a broker, or whoever is at its port, sends to our client. Any bytes become values or a Problem with a sentence that
// is fit for a terminal, without reading beyond their end, and always in the same way, wherever the network cuts them. If
// this failed, a stranger at a broker's address could crash programs that connect there, or make them count messages that
// no topic has.
//
// The sources are included here so that the fuzzer sees which of their lines an input reaches.
#include "lightq/client/address.cpp"
#include "lightq/client/admin.cpp"
#include "lightq/client/connection.cpp"
#include "lightq/client/data.cpp"
#include "lightq/client/hello.cpp"
#include "lightq/client/inbox.cpp"
#include "lightq/client/shown.cpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace leat;
using namespace leat::lightq;

constexpr std::uint64_t kSent = 1000;  // Messages of a producer, before the broker says anything.

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "the client breaks a promise: %s\n", what);
  std::abort();
}

// The other end. Everything is said before the client reads. In pieces, it is a SOCK_SEQPACKET: the client gets one
// piece for each read, as if the rest were still on its way.
class Peer {
 public:
  explicit Peer(int type) {
    int both[2];
    require(::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, both) == 0, "a socket pair");
    mine_ = detail::Fd{both[0]};
    theirs_ = detail::Fd{both[1]};
    const int size = 1 << 20;
    (void)::setsockopt(mine_.get(), SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  }

  void say(std::string_view bytes) {
    const ::ssize_t sent =
        bytes.empty() ? 0 : ::send(mine_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    require(sent == static_cast<::ssize_t>(bytes.size()), "room in the socket");
  }
  // Pieces of pseudorandom sizes, most of them small, about a hundred at most.
  void say_in_pieces(std::string_view bytes, unsigned seed) {
    const std::size_t most = std::max<std::size_t>(12, bytes.size() / 40);
    while (!bytes.empty()) {
      seed = seed * 1103515245 + 12345;
      const std::string_view piece = bytes.substr(0, 1 + (seed >> 16) % most);
      say(piece);
      bytes.remove_prefix(piece.size());
    }
  }
  Connection connection() {
    (void)::shutdown(mine_.get(), SHUT_WR);
    return {std::move(theirs_), "the broker"};
  }

 private:
  detail::Fd mine_;
  detail::Fd theirs_;
};

// What came of it, one line for each thing.
using Events = std::vector<std::string>;

// Whether a terminal shows the sentence as it is: UTF-8 without control characters.
bool is_fit_for_a_person(const std::string& sentence) {
  if (sentence.empty() || sentence.size() > 1000) return false;
  try {
    (void)Json(sentence).dump();
  } catch (const Json::exception&) {
    return false;
  }
  for (std::size_t i = 0; i < sentence.size(); ++i) {
    const auto byte = static_cast<unsigned char>(sentence[i]);
    if (byte < 0x20 || byte == 0x7F) return false;
    // U+0080 to U+009F: terminals take them as commands, too.
    if (byte == 0xC2 && static_cast<unsigned char>(sentence[i + 1]) < 0xA0) return false;
  }
  return true;
}

// What came of one call; false: the connection is of no more use.
bool note(Events& events, const Outcome<std::string>& outcome) {
  if (outcome) {
    events.push_back(*outcome);
    return true;
  }
  const Problem& problem = outcome.problem();
  require(is_fit_for_a_person(problem.sentence), "sentences are fit for a person");
  events.push_back(std::to_string(static_cast<int>(problem.code)) + " " + problem.sentence);
  return problem.code != Errc::closed && problem.code != Errc::corrupt;
}

// --- Administration ----------------------------------------------------------------------------------------------

Outcome<std::string> command(Admin& admin, unsigned which) {
  switch (which % 4) {
    case 0: {
      const auto pong = admin.ping({});
      if (!pong) return pong.problem();
      return std::string{"pong"};
    }
    case 1: {
      const auto answer = admin.ask({{"cmd", "list_topics"}}, {});
      if (!answer) return answer.problem();
      return answer->dump();
    }
    case 2: {
      const auto stats = admin.stats("news", {"ann", "secret"}, {});
      if (!stats) return stats.problem();
      return stats->topic + " " + stats->topic_type + " " + std::to_string(stats->queue_size);
    }
    default: break;
  }
  const auto joined = admin.join("news", {"ann", "secret"}, Role::puller, {});
  if (!joined) return joined.problem();
  require(!joined->token.empty() && !joined->data.host.empty() && joined->data.port != 0,
          "a join brings an address and a token");
  return joined->data.text() + " " + joined->token;
}

Events administrate(Connection connection, unsigned which) {
  Events events;
  Admin admin{std::move(connection)};
  for (int i = 0; i < 8 && note(events, command(admin, which)); ++i) which /= 4;
  return events;
}

// --- Data --------------------------------------------------------------------------------------------------------

Outcome<std::string> publish_all(Connection connection) {
  auto producer =
      Producer::open(std::move(connection), {Role::producer, "news", {}, "T"}, {1 << 20}, {});
  if (!producer) return producer.problem();
  Outcome<void> done;
  for (std::uint64_t i = 0; done && i < kSent; ++i) done = producer->publish("x");
  if (done) done = producer->wait_published(kSent, {});
  if (!done) return done.problem();
  return std::string{"all"};
}

Events produce(Connection connection) {
  Events events;
  note(events, publish_all(std::move(connection)));
  return events;
}

Outcome<std::string> next_message(Consumer& consumer) {
  const auto message = consumer.next({});
  if (!message) return message.problem();
  require(message->has_value(), "without a deadline, a message comes or a Problem");
  consumer.acknowledge();
  return "message " + std::string{(*message)->text()};
}

Events consume(Connection connection, bool acknowledges) {
  Events events;
  auto consumer =
      Consumer::open(std::move(connection), {Role::puller, "news", {}, "T"}, {acknowledges}, {});
  if (!consumer) {
    note(events, consumer.problem());
    return events;
  }
  while (note(events, next_message(*consumer))) {
  }
  note(events, std::to_string(consumer->received()));
  return events;
}

// --- Naive models ------------------------------------------------------------------------------------------------

template <class Number>
Number little_endian_in(std::string_view bytes) {
  Number number = 0;
  std::memcpy(&number, bytes.data(), sizeof number);  // As on every machine that Leat runs on.
  return number;
}

Events messages_in(std::string_view bytes) {
  Events messages;
  while (bytes.size() >= 4) {
    const auto length = little_endian_in<std::uint32_t>(bytes);
    if (length > kMaxMessage || bytes.size() - 4 < length) break;
    messages.push_back("message " + std::string{bytes.substr(4, length)});
    bytes.remove_prefix(4 + length);
  }
  return messages;
}

// A part of what a producer says of these counts.
std::string outcome_of(std::string_view bytes) {
  std::uint64_t last = 0;
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    const auto count = little_endian_in<std::uint64_t>(bytes);
    if (count < last || count > kSent) return "counts " + std::to_string(count) + " messages";
    last = count;
  }
  return last == kSent ? "all" : ", " + std::to_string(last) + " are known";
}

// --- One input ---------------------------------------------------------------------------------------------------

enum class Kind { raw_admin, framed_admin, producer, producer_hello, consumer, consumer_hello };
constexpr unsigned kKinds = 6;

std::string all_bytes(Kind kind, std::string_view input) {
  std::string bytes;
  switch (kind) {
    case Kind::framed_admin:  // One answer for each line: lengths are hard to guess.
      while (!input.empty()) {
        const std::string_view line = input.substr(0, input.find('\n'));
        append_admin_frame(bytes, line);
        input.remove_prefix(std::min(input.size(), line.size() + 1));
      }
      return bytes;
    case Kind::producer:
    case Kind::consumer: append_frame(bytes, Bytes{R"({"status":"ok"})"}); break;
    case Kind::producer_hello:
    case Kind::consumer_hello: append_frame(bytes, Bytes{input}); return bytes;
    case Kind::raw_admin: break;
  }
  return bytes.append(input);
}

Events play(Kind kind, unsigned choice, Peer& peer) {
  switch (kind) {
    case Kind::producer:
    case Kind::producer_hello: return produce(peer.connection());
    case Kind::consumer:
    case Kind::consumer_hello: return consume(peer.connection(), choice % 2 != 0);
    case Kind::raw_admin:
    case Kind::framed_admin: break;
  }
  return administrate(peer.connection(), choice);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3 || size > 1 << 16) return 0;
  const auto kind = static_cast<Kind>(data[0] % kKinds);
  const unsigned choice = data[1] * 257U;
  const std::string_view input{reinterpret_cast<const char*>(data) + 3, size - 3};
  const std::string bytes = all_bytes(kind, input);

  Peer at_once{SOCK_STREAM};
  at_once.say(bytes);
  const Events whole = play(kind, choice, at_once);
  Peer slow{SOCK_SEQPACKET};
  slow.say_in_pieces(bytes, data[2]);
  require(play(kind, choice, slow) == whole, "the same, however the bytes are cut");

  if (kind == Kind::consumer) {
    Events got = whole;
    got.resize(got.size() - 2);  // Without the reason of the end, and the number of messages.
    require(got == messages_in(input) && whole.back() == std::to_string(got.size()),
            "the messages that were sent");
  }
  require(kind != Kind::producer || whole.front().find(outcome_of(input)) != std::string::npos,
          "the count that was sent");
  return 0;
}
