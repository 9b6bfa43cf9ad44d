// What clients send to the administration port. Any bytes get an answer for each command that is whole, or end the
// connection, in the same way wherever the network cuts them; nobody changes anything without a password. If this failed,
// strangers could crash the broker, take topics over, or read passwords in its answers and its log.
//
// All is the broker's own, but Logins, because a hash takes 20 ms.
#include "broker_sources.hpp"

#include <spdlog/sinks/ostream_sink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace leat::broker {
namespace {

bool answers_late = false;

Verifier quick_verifier(std::string_view password) {
  Verifier verifier;
  verifier.argon2.key = hash_of<Sha256>(password);
  return verifier;
}

}  // namespace

// The same answers as those of logins.cpp, now or after a turn of the loop, without limits that depend on the time.
void Logins::check(const Question& question, Secret password, Done done) {
  const bool is_right = question.verifier && *question.verifier == quick_verifier(password.text());
  const Verdict verdict = is_right ? Verdict::right : Verdict::wrong;
  if (!answers_late) return done(verdict);
  boost::asio::post(loop_, [verdict, done = std::move(done)] { done(verdict); });
}

void Logins::make(const Maker&, Secret password, Made done) {
  const bool is_possible = password.text().size() <= kMaxPassword;
  const auto made = is_possible ? Outcome<Verifier>{quick_verifier(password.text())}
                                : Problem{Errc::too_large, "a password is too long"};
  if (!answers_late) return done(made);
  boost::asio::post(loop_, [made, done = std::move(done)] { done(made); });
}

// The same without a thread: an input has the same answers each time.
BlockingWorker::BlockingWorker(boost::asio::io_context& loop) : loop_{loop.get_executor()} {}
BlockingWorker::~BlockingWorker() = default;
void BlockingWorker::add(std::function<void()> work, std::function<void()> done) {
  work();
  boost::asio::post(loop_, std::move(done));
}

}  // namespace leat::broker

namespace {

using namespace leat;
using namespace leat::broker;
using namespace leat::broker::lightq;
using nlohmann::json;

constexpr std::string_view kAdminPassword = "Overlord";
constexpr std::string_view kPasswords[] = {kAdminPassword, "Anns-own", "Bobs-own", "Newer-one"};
constexpr std::size_t kMostCommandBytes = 1024;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "the administration breaks a promise: %s\n", what);
  std::abort();
}

// --- The broker ------------------------------------------------------------------------------------------------------

std::string temporary_directory() {
  const char* const parent = std::getenv("LEAT_DIR");
  std::string path = std::string{parent == nullptr ? "/dev/shm" : parent} + "/admin-XXXXXX";
  require(::mkdtemp(path.data()) != nullptr, "a temporary directory");
  return path;
}

// An address of this machine that another fuzzer does not use at the same time.
std::string own_address() {
  const auto pid = static_cast<unsigned>(::getpid());
  return fmt::format("127.{}.{}.{}", 1 + (pid >> 14) % 200, 1 + (pid >> 7) % 128, 1 + pid % 128);
}

Config config_in(const std::string& path) {
  Config config;
  config.dir = path + "/topics";
  config.data_dir = path + "/data";
  config.state_dir = path + "/state";
  config.of<Settings>().addresses = {own_address()};
  config.of<Settings>().data_ports = {7001, 7020};
  config.max_command_bytes = kMostCommandBytes;
  config.max_topics = 5;
  config.topic_idle_time = std::chrono::hours{24};
  for (const std::string& one : {config.dir, config.data_dir})
    std::filesystem::create_directories(one);
  return config;
}

TopicStore store_in(const std::string& directory) {
  auto store = TopicStore::open(directory);
  require(store.has_value(), "a store");
  require(store->set_administrator(quick_verifier(kAdminPassword)).has_value(), "an administrator");
  return std::move(*store);
}

// One for all inputs: a new store for each would take most of the time.
class World {
 public:
  World() {
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_st>(log);
    auto logger = std::make_shared<spdlog::logger>("fuzz", std::move(sink));
    logger->set_level(spdlog::level::debug);
    logger->set_pattern("%v");
    spdlog::set_default_logger(std::move(logger));
    topics.add_observer(ports);
    require(states.load(settings.all_data_ports()).has_value(), "nothing is stored");
    reset();
  }
  ~World() {
    logins.stop();
    ports.close();
    connections.close_all("the end");
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // One topic of ann, which bob may read, and one that a local process made. Ann's is only made again if it was deleted:
  // to attach its memory takes longer than everything else.
  void reset() {
    std::vector<TopicPtr> others;
    topics.for_each([&](const TopicPtr& topic) {
      if (topic->name() != "news") others.push_back(topic);
    });
    for (const TopicPtr& topic : others) {
      topics.delete_topic(topic, [](const Outcome<void>& deleted) {
        require(deleted.has_value(), "a topic can be deleted");
      });
    }
    settle();
    const Verifier anns = quick_verifier("Anns-own");
    const Verifier bobs = quick_verifier("Bobs-own");
    TopicPtr news = topics.find("news");
    if (news == nullptr) {
      const auto added =
          topics.add({.name = "news", .user = "ann", .verifier = anns, .group = kGroup});
      require(added.has_value(), "a topic can be made");
      news = *added;
    }
    if (news->stored().verifier != anns)
      require(topics.set_password(*news, "ann", anns).has_value(), "a password can be changed");
    const std::vector<Right> rights = news->stored().rights;
    for (const Right& right : rights) {
      if (right.user != "bob")
        require(topics.revoke(*news, right.user).has_value(), "a right can be taken");
    }
    const auto right = credential_of(news->stored(), "bob");
    if (!right || !right->may_read || right->may_write || right->verifier != bobs)
      require(topics.grant(*news, {"bob", true, false, bobs}).has_value(), "a right can be given");

    const auto local = Topic::create("local", {.capacity_bytes = 1 << 17,
                                               .segment_bytes = 1 << 16,
                                               .directory = config.dir,
                                               .data_directory = config.data_dir});
    require(local || local.error() == Errc::exists, "a local topic");
    settle();
  }

  // What is stored; and, if `whole`, what those who may use a topic can change.
  std::string state(bool whole) {
    const auto stored = store.topics();
    const auto values = store.values(kProtocol);
    require(stored && values, "the store can be read");
    std::string text;
    for (const StoredTopic& one : *stored) {
      text += fmt::format("{} {} {} {} {};", one.id, one.name, one.user, one.is_durable,
                          name_of(one.data_auth));
      if (whole) {
        text += fmt::format("{} {} {}:", one.verifier_version, name_of(one.consumers), one.group);
        for (const ProtocolValue& value : *values) {
          if (value.topic_id == one.id) text += value.name + value.value + " ";
        }
      }
      for (const Right& right : one.rights) {
        text += fmt::format("{} {} {} {};", right.user, right.may_read, right.may_write,
                            whole ? right.verifier_version : 0);
      }
    }
    topics.for_each([&](const TopicPtr& topic) {
      require(states.of(*topic)->joined.empty(), "who has left has not joined");
      text += topic->name() + ";";
    });
    return text;
  }

  // Until nothing is left to do.
  void settle() {
    while (loop.poll() != 0) {
    }
  }

  std::string path = temporary_directory();
  std::ostringstream log;
  Config config = config_in(path);
  boost::asio::io_context loop{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{
      loop.get_executor()};
  TopicStore store = store_in(config.state_dir);
  Logins logins{loop};
  Topics topics{loop, config, store};
  Connections connections{{100, 100}};
  Tokens tokens{store.token_secret()};
  Services services{loop, config, store, topics, logins, tokens, connections};
  Settings settings = config.of<Settings>();
  TopicStates states{topics, store};
  DataPorts ports{services, settings, states};
  Admin admin{services, settings, states, ports};
};

// --- A client --------------------------------------------------------------------------------------------------------

class Client {
 public:
  explicit Client(World& world) : world_{world} {
    int both[2];
    const int type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
    require(::socketpair(AF_UNIX, type, 0, both) == 0, "a socket pair");
    socket_ = both[0];
    const Peer::Address here = boost::asio::ip::address_v4::loopback();
    auto stream = make_admin_stream(
        Accepted{{world.loop, boost::asio::generic::stream_protocol{AF_UNIX, 0}, both[1]},
                 {.address = here, .port = 0, .own_address = here, .is_unix = true}},
        world.admin, world.config);
    stream_ = stream;
    world.connections.start(std::move(stream), Connections::Kind::commands);
    world.settle();
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() {
    ::close(socket_);
    world_.settle();
    require(stream_.expired(), "a connection that has ended is forgotten");
  }

  void send(std::string_view bytes) {
    const ::ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    require(sent == static_cast<::ssize_t>(bytes.size()) || errno == EPIPE, "room in the socket");
  }
  void read() {
    char buffer[4096];
    for (;;) {
      world_.settle();
      const ::ssize_t count = ::recv(socket_, buffer, sizeof buffer, 0);
      if (count <= 0) return;
      received_.append(buffer, static_cast<std::size_t>(count));
    }
  }
  // All that came until the broker had no more to say.
  std::string end() {
    read();
    (void)::shutdown(socket_, SHUT_WR);
    read();
    require(stream_.expired(), "a connection ends with its client");
    return std::move(received_);
  }

 private:
  World& world_;
  int socket_ = -1;
  std::weak_ptr<Stream> stream_;
  std::string received_;
};

std::string answers_in_one(World& world, std::string_view bytes) {
  Client client{world};
  client.send(bytes);
  return client.end();
}

// Pieces of pseudorandom sizes, about a hundred at most.
std::string answers_in_pieces(World& world, std::string_view bytes, unsigned seed) {
  const std::size_t most = std::max<std::size_t>(12, bytes.size() / 30);
  Client client{world};
  while (!bytes.empty()) {
    seed = seed * 1103515245 + 12345;
    const std::string_view piece = bytes.substr(0, 1 + (seed >> 16) % most);
    client.send(piece);
    client.read();
    bytes.remove_prefix(piece.size());
  }
  return client.end();
}

// --- What clients say ------------------------------------------------------------------------------------------------

// JSON has no use for control characters: here they are parts of commands, which inputs would hardly guess.
std::string_view long_form(const char& byte) {
  switch (byte) {
    case 1: return R"({"cmd":"create_topic",)";
    case 2: return R"({"cmd":"join",)";
    case 3: return R"({"cmd":"stats",)";
    case 4: return R"({"cmd":"leave",)";
    case 5: return R"({"cmd":"change_password",)";
    case 6: return R"({"cmd":"seek",)";
    case 7: return R"({"cmd":"list_topics",)";
    case 8: return R"({"cmd":"delete_topic",)";
    case 11: return R"({"cmd":"grant",)";
    case 12: return R"({"cmd":"revoke",)";
    case 14: return R"("admin_user_id":"lightq_admin","admin_password":"Overlord",)";
    case 15: return R"("topic":"news","user_id":"ann","password":"Anns-own",)";
    case 16: return R"("user_id":"bob","password":"Bobs-own",)";
    case 17: return R"("topic":"news",)";
    case 18: return R"("topic":"more",)";
    case 19: return R"("topic":"local",)";
    case 20: return R"("type":"pub",)";
    case 21: return R"("type":"sub",)";
    case 22: return R"("type":"pull",)";
    case 23: return R"("connection_type":"socket",)";
    case 24: return R"("connection_type":"shm",)";
    case 25: return R"("leat":1,)";
    case 26: return R"("new_password":"Newer-one",)";
    case 27: return R"("to":"beginning",)";
    case 28: return R"("right":"read_write",)";
    case 29: return R"("broker_type":"file",)";
    case 30: return R"("data_auth":"open",)";
    case 31: return R"("":0})";
    default: return {&byte, 1};
  }
}

enum class Form { bytes, lengths, zmtp_messages, zmtp_bytes };

// One in each line. None if the form is one in which the input is not of commands.
std::vector<std::string> commands_in(Form form, std::string_view lines) {
  if (form == Form::bytes || form == Form::zmtp_bytes) return {};
  std::vector<std::string> commands(1);
  for (const char& byte : lines) {
    if (byte == '\n') {
      commands.emplace_back();
    } else {
      commands.back() += long_form(byte);
    }
  }
  if (form == Form::zmtp_messages) {  // A longer one would end the connection.
    for (std::string& command : commands)
      command.resize(std::min(command.size(), kMostCommandBytes));
  }
  return commands;
}

constexpr std::string_view kGreeting{"\xFF\0\0\0\0\0\0\0\1\x7F\3", 11};

std::string zmtp_beginning() {
  std::string bytes{kGreeting};
  bytes += '\1';
  bytes += "NULL";
  bytes.resize(64);
  std::string metadata;
  zmtp::append_property(metadata, "Socket-Type", std::string_view{"REQ"});
  zmtp::append_command(bytes, "READY", metadata);
  return bytes;
}

std::string session(Form form, std::string_view input, const std::vector<std::string>& commands) {
  std::string bytes;
  switch (form) {
    case Form::bytes: return std::string{input};
    case Form::zmtp_bytes: return zmtp_beginning().append(input);
    case Form::lengths:
      for (const std::string& command : commands) leat::lightq::append_admin_frame(bytes, command);
      return bytes;
    case Form::zmtp_messages: break;
  }
  bytes = zmtp_beginning();
  for (const std::string& command : commands)
    zmtp::append_message(bytes, std::string_view{}, command);
  return bytes;
}

// --- What the broker answers -----------------------------------------------------------------------------------------

// How many answers there have to be to commands behind their lengths.
std::size_t expected_answers(std::string_view bytes) {
  std::size_t count = 0;
  while (bytes.size() >= 4) {
    const std::size_t length =
        leat::lightq::admin_length(reinterpret_cast<const std::byte*>(bytes.data()));
    if (length > kMostCommandBytes) return count + 1;  // And the end of the connection.
    if (bytes.size() < 4 + length) break;
    bytes.remove_prefix(4 + length);
    ++count;
  }
  return count;
}

std::vector<std::string> answers_behind_lengths(std::string_view bytes) {
  std::vector<std::string> answers;
  while (!bytes.empty()) {
    require(bytes.size() >= 4, "a whole length");
    const std::size_t length =
        leat::lightq::admin_length(reinterpret_cast<const std::byte*>(bytes.data()));
    require(bytes.size() - 4 >= length, "a whole answer");
    answers.emplace_back(bytes.substr(4, length));
    bytes.remove_prefix(4 + length);
  }
  return answers;
}

std::vector<std::string> answers_in_zmtp(std::string_view bytes) {
  std::vector<std::string> answers;
  require(bytes.size() >= 64, "a greeting");
  bytes.remove_prefix(64);
  while (!bytes.empty()) {
    const auto header = zmtp::read_header(Bytes{bytes});
    require(header && bytes.size() - header->header_bytes >= header->body_bytes, "a whole frame");
    const auto flags = static_cast<unsigned char>(bytes[0]);
    if ((flags & (zmtp::kMore | zmtp::kCommand)) == 0)
      answers.emplace_back(bytes.substr(header->header_bytes, header->body_bytes));
    bytes.remove_prefix(header->header_bytes + header->body_bytes);
  }
  return answers;
}

// Returns whether it says that something was done.
bool check_answer(const std::string& answer) {
  if (answer == "pong") return false;
  const json object = json::parse(answer, nullptr, false);
  require(object.is_object() && object.contains("cmd") && object["cmd"].is_string(),
          "an answer is a JSON object with a command");
  const json status = object.value("status", json{});
  require(status == "ok" || status == "error", "a status is ok or error");
  if (status == "ok") return true;
  const std::string sentence = object.value("description", "");
  require(!sentence.empty() && !has_control_characters(sentence),
          "what is wrong is told in a line");
  return false;
}

// Tokens, and ports in addresses, are others each time.
std::string comparable(std::string text) {
  const auto blank = [&](std::string_view before, std::string_view characters) {
    for (std::size_t at = text.find(before); at != text.npos; at = text.find(before, at)) {
      at += before.size();
      for (; at < text.size() && characters.find(text[at]) != characters.npos; ++at) text[at] = '?';
    }
  };
  constexpr std::string_view kDigits = "0123456789";
  constexpr std::string_view kOfBase64 =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  blank("leat1.", kOfBase64);
  blank(".1:", kDigits);
  blank(own_address() + ":", kDigits);
  return text;
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

// Whether every password in it is the value of a password, so that nothing may repeat it.
bool are_passwords_hidden(std::string_view bytes) {
  constexpr std::string_view kBefore = R"(password":")";
  if (contains(bytes, "\\")) return false;  // It may be a character that is written in another way.
  for (const std::string_view password : kPasswords) {
    for (std::size_t at = bytes.find(password); at != bytes.npos;
         at = bytes.find(password, at + 1)) {
      if (!bytes.substr(0, at).ends_with(kBefore)) return false;
    }
  }
  return true;
}

void check_secrecy(const std::string& text) {
  for (const std::string_view password : kPasswords)
    require(!contains(text, password), "no password is told");
}

void check_log(std::string log, bool is_secret) {
  if (is_secret) check_secrecy(log);
  std::replace(log.begin(), log.end(), '\n', ' ');
  require(!has_control_characters(log), "the log is fit for a terminal");
}

// Whether it begins with a JSON object that is whole; the rest is ignored.
bool is_object(const std::string& command) {
  try {
    std::istringstream stream{command};
    json object;
    stream >> object;
    return object.is_object();
  } catch (const json::exception&) {
    return false;
  }
}

// Returns whether something was done.
bool check_answers(Form form, const std::vector<std::string>& commands, const std::string& bytes,
                   const std::string& received) {
  const bool has_lengths =
      form == Form::lengths || (form == Form::bytes && bytes.starts_with('\0'));
  std::vector<std::string> answers;
  if (has_lengths) {
    answers = answers_behind_lengths(received);
    require(answers.size() == expected_answers(bytes), "one answer for each command");
  } else if (form != Form::bytes) {
    answers = answers_in_zmtp(received);
  } else {
    return true;  // Nobody knows.
  }
  if (form == Form::zmtp_messages)
    require(answers.size() == commands.size(), "one answer for each message");
  bool is_done = false;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const bool is_ok = check_answer(answers[i]);
    is_done |= is_ok;
    if (i >= commands.size() || is_object(commands[i])) continue;
    require(!is_ok && answers[i] != "pong", "half of a command is not done");
  }
  return is_done;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static World world;
  if (size < 2) return 0;
  const auto form = static_cast<Form>(data[0] & 3);
  const bool is_late = (data[0] & 4) != 0;
  const bool hangs_up = (data[0] & 8) != 0;
  const std::string_view input{reinterpret_cast<const char*>(data) + 2, size - 2};
  const std::vector<std::string> commands = commands_in(form, input);
  const std::string bytes = session(form, input, commands);
  if (bytes.size() > 64 * 1024) return 0;
  const bool is_secret = are_passwords_hidden(bytes);
  const bool may_be_escaped = contains(bytes, "\\");
  const bool may_be_admin = may_be_escaped || contains(bytes, kAdminPassword);
  const bool may_be_user =
      may_be_admin || std::any_of(std::begin(kPasswords), std::end(kPasswords),
                                  [&](std::string_view one) { return contains(bytes, one); });
  world.log.str({});

  const std::string before = world.state(!may_be_user);
  answers_late = false;
  const std::string whole = answers_in_one(world, bytes);
  const bool is_done = check_answers(form, commands, bytes, whole);
  require(may_be_user || !is_done || form == Form::bytes, "nothing is done without a password");
  if (!may_be_admin)
    require(world.state(!may_be_user) == before, "only the administrator makes and changes topics");
  if (is_secret) check_secrecy(whole);

  if (is_done) world.reset();
  answers_late = is_late;
  const std::string pieces = answers_in_pieces(world, bytes, data[1]);
  require(comparable(pieces) == comparable(whole), "the same answers, however the bytes are cut");
  if (hangs_up) {
    Client client{world};
    client.send(bytes);
  }
  check_log(world.log.str(), is_secret);
  if (is_done || hangs_up) world.reset();
  return 0;
}
