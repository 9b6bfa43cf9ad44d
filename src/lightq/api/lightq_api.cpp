// LightQ's C functions. The rules for callers are in the header; here: nothing throws across `extern "C"`, texts are
// copied only where they fit, and each problem is a line in the log.
#include <leat/lightq_api.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "broker_process.hpp"
#include "lightq/client/data.hpp"
#include "log.hpp"

namespace {

using namespace leat::lightq;
using leat::Bytes;
using leat::Deadline;
using leat::Errc;
using leat::Outcome;
using leat::Problem;
using leat::lightq_api::BrokerProcess;
using leat::lightq_api::log;

constexpr unsigned kLargestMessage = 1024 * 1024;

// The value that `call` returns. Its problem, or what the standard library throws without memory or threads, becomes a
// line in the log, and `failed` the result.
template <class Result, class Call>
Result guarded(const char* function, Result failed, Call&& call) noexcept {
  const auto note = [&](const std::string& sentence) {
    log().write(LOG_ERROR, std::string{function} + ": " + sentence);
  };
  try {
    const Outcome<Result> outcome = call();
    if (outcome) return *outcome;
    note(outcome.problem().sentence);
  } catch (const std::exception& error) {
    try {
      note(error.what());
    } catch (...) {
    }
  }
  return failed;
}

// For a call that returns nothing.
template <class Call>
void noted(const char* function, Call&& call) noexcept {
  guarded(function, false, [&]() -> Outcome<bool> {
    const Outcome<void> outcome = call();
    if (!outcome) return outcome.problem();
    return true;
  });
}

Problem refusal(const std::string& why) { return {Errc::invalid_argument, why}; }

// An argument of a function, and its name.
struct Text {
  const char* text;
  const char* name;
};

Outcome<void> refuse_nulls(std::initializer_list<Text> texts) {
  for (const Text& one : texts) {
    if (one.text == nullptr) return refusal(std::string{one.name} + " is NULL");
  }
  return {};
}

// Copies a text that fits, with its null byte.
template <std::size_t N>
Outcome<void> copy_to(char (&place)[N], const Text& from) {
  if (auto given = refuse_nulls({from}); !given) return given;
  const std::size_t size = ::strnlen(from.text, N);
  if (size == N)
    return refusal(std::string{from.name} + " has more than " + std::to_string(N - 1) + " bytes");
  std::memcpy(place, from.text, size + 1);
  return {};
}

// The same for what a broker said: cut where it does not fit.
template <std::size_t N>
void copy_part_to(char (&place)[N], std::string_view text) noexcept {
  const std::size_t size = std::min(text.size(), N - 1);
  std::memcpy(place, text.data(), size);
  place[size] = '\0';
}

// A lightq_conn that frees what it has.
struct FreeConn {
  void operator()(lightq_conn* conn) const noexcept {
    delete static_cast<Admin*>(conn->admin_conn);
    ::explicit_bzero(conn->password, sizeof conn->password);
    delete conn;
  }
};
using Conn = std::unique_ptr<lightq_conn, FreeConn>;

Outcome<Conn> make_conn(const char* userid, const char* password, const char* topic,
                        const char* broker_uri) {
  Conn conn{new lightq_conn{}};
  auto copied = copy_to(conn->userid, {userid, "userid"});
  if (copied) copied = copy_to(conn->password, {password, "password"});
  if (copied) copied = copy_to(conn->topic, {topic, "topic"});
  if (copied) copied = copy_to(conn->broker_uri, {broker_uri, "broker_uri"});
  if (!copied) return copied.problem();
  return conn;
}

Outcome<Admin> open_admin(const char* broker_uri) {
  const auto address = parse_tcp_uri(broker_uri);
  if (!address) return address.problem();
  return Admin::open(*address, to_connect());
}

// Its connection to the administration, made if there is none.
Outcome<Admin*> admin_of(lightq_conn& conn) {
  if (conn.admin_conn == nullptr) {
    auto admin = open_admin(conn.broker_uri);
    if (!admin) return admin.problem();
    conn.admin_conn = new Admin{std::move(*admin)};
  }
  return static_cast<Admin*>(conn.admin_conn);
}

Credentials credentials_of(const lightq_conn& conn) { return {conn.userid, conn.password}; }

Outcome<Joined> join(lightq_conn& conn, Role role) {
  const auto admin = admin_of(conn);
  if (!admin) return admin.problem();
  return (*admin)->join(conn.topic, credentials_of(conn), role, to_answer());
}

// After other refusals than these, the connection is of no more use.
bool is_answer(Errc code) noexcept {
  return code == Errc::permission || code == Errc::not_found || code == Errc::busy ||
         code == Errc::invalid_argument || code == Errc::unsupported;
}

Outcome<Stats> stats_of(lightq_conn& conn) {
  const auto admin = admin_of(conn);
  if (!admin) return admin.problem();
  auto stats = (*admin)->stats(conn.topic, credentials_of(conn), to_answer());
  if (!stats && !is_answer(stats.problem().code))
    delete static_cast<Admin*>(std::exchange(conn.admin_conn, nullptr));
  return stats;
}

void count(lightq_conn& conn, std::size_t bytes) noexcept {
  ++conn.message_counter;
  conn.payload_size_counter += bytes;
}

// What client_conn of a consumer is.
struct Receiver {
  Consumer consumer;
  std::optional<Bytes> waiting = {};  // Too large for the buffer of the last call.
};

Outcome<const char*> word_for_type(broker_storage_type type) {
  switch (type) {
    case queue_type: return "queue";
    case file_type: return "file";
    case direct_type: return "direct";
    case queue_file_type: return "queue_file";
  }
  return refusal("storage_type " + std::to_string(static_cast<int>(type)) + " is none");
}

}  // namespace

extern "C" {

// --- Log -----------------------------------------------------------------------------------------

bool init_log(const char* logdir, const char* process_name, lightq_loglevel level) {
  if (logdir == nullptr || process_name == nullptr) return false;
  return guarded("init_log", false,
                 [&]() -> Outcome<bool> { return log().open(logdir, process_name, level); });
}

bool set_loglevel(lightq_loglevel level) {
  return guarded("set_loglevel", false, [&]() -> Outcome<bool> { return log().set_level(level); });
}

lightq_loglevel str_to_loglevel(const char* text) {
  constexpr const char* kWords[] = {"trace", "debug",    "info",  "event", "warn",
                                    "error", "critical", "alert", "emerg", "off"};
  for (int i = LOG_TRACE; text != nullptr && i <= LOG_OFF; ++i) {
    if (std::strcmp(text, kWords[i]) == 0) return static_cast<lightq_loglevel>(i);
  }
  return LOG_EVENT;
}

// --- Producers -----------------------------------------------------------------------------------

lightq_producer_conn* init_producer(const char* userid, const char* password, const char* topic,
                                    const char* broker_uri) {
  using Made = lightq_producer_conn*;
  return guarded("init_producer", Made{nullptr}, [&]() -> Outcome<Made> {
    auto conn = make_conn(userid, password, topic, broker_uri);
    if (!conn) return conn.problem();
    const auto stats = stats_of(**conn);
    if (!stats) return stats.problem();
    const auto joined = join(**conn, Role::producer);
    if (!joined) return joined.problem();
    auto client = Producer::open(*joined, {.collect_bytes = 0}, to_connect());
    if (!client) return client.problem();
    auto producer = std::make_unique<lightq_producer_conn>();
    producer->pubDelayAlgorithm = &publish_delay_algorithm;
    copy_part_to(producer->topic_type, stats->topic_type);
    (*conn)->client_conn = new Producer{std::move(*client)};
    producer->conn = conn->release();
    return producer.release();
  });
}

void free_producer_conn(lightq_producer_conn* producer) {
  if (producer == nullptr) return;
  const Conn conn{producer->conn};
  delete producer;
  const std::unique_ptr<Producer> client{static_cast<Producer*>(conn->client_conn)};
  noted("free_producer_conn", [&] { return client->wait_published(client->sent(), to_answer()); });
}

int publish_message(lightq_producer_conn* producer, const char* message, unsigned length) {
  return guarded("publish_message", -1, [&]() -> Outcome<int> {
    if (producer == nullptr) return refusal("the producer is NULL");
    if (message == nullptr && length != 0) return refusal("the message is NULL");
    if (length > kLargestMessage)
      return refusal("a message of " + std::to_string(length) + " bytes; the most is 1 MiB");
    auto& client = *static_cast<Producer*>(producer->conn->client_conn);
    auto sent = client.publish({message, length});
    if (sent) sent = client.flush();
    if (!sent) return sent.problem();
    count(*producer->conn, length);
    if (producer->delay_pub_on_slow_consumer && producer->pubDelayAlgorithm != nullptr)
      producer->pubDelayAlgorithm(producer);
    return static_cast<int>(length);
  });
}

void publish_delay_algorithm(void* opaque) {
  constexpr std::uint64_t kEvery = 250'000;
  constexpr std::uint64_t kMany = 10'000;
  auto* const producer = static_cast<lightq_producer_conn*>(opaque);
  if (producer == nullptr || producer->conn->message_counter % kEvery != 0) return;
  noted("publish_delay_algorithm", [&]() -> Outcome<void> {
    const auto stats = stats_of(*producer->conn);
    if (!stats) return stats.problem();
    const std::uint64_t size = stats->queue_size;
    const std::uint64_t before = std::exchange(producer->last_queue_size, size);
    if (size > kMany) {
      std::this_thread::sleep_for(std::chrono::milliseconds{size / 1000});
    } else if (size > before) {
      std::this_thread::sleep_for(std::chrono::milliseconds{(size - before) / 100});
    }
    return {};
  });
}

// --- Consumers -----------------------------------------------------------------------------------

lightq_consumer_conn* init_consumer(const char* userid, const char* password, const char* topic,
                                    const char* broker_uri, consumer_socket_type type) {
  using Made = lightq_consumer_conn*;
  return guarded("init_consumer", Made{nullptr}, [&]() -> Outcome<Made> {
    if (type != zmq_consumer && type != socket_consumer) return refusal("the type is none");
    auto conn = make_conn(userid, password, topic, broker_uri);
    if (!conn) return conn.problem();
    const auto joined = join(**conn, Role::puller);
    if (!joined) return joined.problem();
    auto client = Consumer::open(*joined, {.acknowledges = true}, to_connect());
    if (!client) return client.problem();
    auto consumer = std::make_unique<lightq_consumer_conn>();
    consumer->socket_type = type;
    (*conn)->client_conn = new Receiver{std::move(*client)};
    consumer->p_lightq_conn = conn->release();
    return consumer.release();
  });
}

void free_consumer_conn(lightq_consumer_conn* consumer) {
  if (consumer == nullptr) return;
  const Conn conn{consumer->p_lightq_conn};
  delete consumer;
  const std::unique_ptr<Receiver> receiver{static_cast<Receiver*>(conn->client_conn)};
  noted("free_consumer_conn", [&] { return receiver->consumer.finish(to_connect()); });
}

int receive_message(lightq_consumer_conn* consumer, char* buffer, unsigned buffer_length) {
  return guarded("receive_message", -1, [&]() -> Outcome<int> {
    if (consumer == nullptr) return refusal("the consumer is NULL");
    if (buffer == nullptr) return refusal("the buffer is NULL");
    auto& receiver = *static_cast<Receiver*>(consumer->p_lightq_conn->client_conn);
    auto& waiting = receiver.waiting;
    while (!waiting) {
      const auto next = receiver.consumer.next();
      if (!next) return next.problem();
      waiting = *next;
    }
    if (waiting->size() > buffer_length) {
      return refusal("a message of " + std::to_string(waiting->size()) +
                     " bytes, and a buffer of " + std::to_string(buffer_length));
    }
    const std::size_t size = waiting->size();
    std::copy_n(waiting->text().data(), size, buffer);
    waiting.reset();
    receiver.consumer.acknowledge();
    count(*consumer->p_lightq_conn, size);
    // One acknowledgement for all that came together.
    if (!receiver.consumer.has_next())
      noted("receive_message", [&] { return receiver.consumer.send_count(); });
    return static_cast<int>(size);
  });
}

// --- Administration ------------------------------------------------------------------------------

bool get_stats(lightq_conn* conn, topic_stats* stats) {
  if (stats == nullptr) return false;
  *stats = {};
  copy_part_to(stats->status, "error");
  return guarded("get_stats", false, [&]() -> Outcome<bool> {
    if (conn == nullptr) return refusal("the connection is NULL");
    const auto got = stats_of(*conn);
    if (!got) return got.problem();
    copy_part_to(stats->status, "ok");
    copy_part_to(stats->topic, got->topic);
    copy_part_to(stats->topic_type, got->topic_type);
    stats->queue_size = got->queue_size;
    stats->messages_sent = got->messages_sent;
    stats->messages_received = got->messages_received;
    stats->publishers_count = got->publishers_count;
    stats->subscribers_count = got->subscribers_count;
    stats->total_bytes_written = got->total_bytes_written;
    stats->total_bytes_read = got->total_bytes_read;
    return true;
  });
}

bool create_topic(const char* broker_uri, const char* topic, const char* admin_userid,
                  const char* admin_password, const char* userid, const char* password,
                  broker_storage_type storage_type) {
  return guarded("create_topic", false, [&]() -> Outcome<bool> {
    const auto given = refuse_nulls({{topic, "topic"},
                                     {userid, "userid"},
                                     {password, "password"},
                                     {admin_userid, "admin_userid"},
                                     {admin_password, "admin_password"},
                                     {broker_uri, "broker_uri"}});
    if (!given) return given.problem();
    const auto type = word_for_type(storage_type);
    if (!type) return type.problem();
    auto admin = open_admin(broker_uri);
    if (!admin) return admin.problem();
    const auto created = admin->create_topic(
        {admin_userid, admin_password}, {.name = topic, .type = *type, .user = {userid, password}},
        to_answer());
    if (!created) return created.problem();
    return true;
  });
}

// --- The broker ----------------------------------------------------------------------------------

lightq_broker_mgr* init_broker(const char* admin_userid, const char* admin_password,
                               const char* transport, const char* bind_ip, unsigned bind_port) {
  using Made = lightq_broker_mgr*;
  return guarded("init_broker", Made{nullptr}, [&]() -> Outcome<Made> {
    const auto given = refuse_nulls({{admin_userid, "admin_userid"},
                                     {transport, "transport"},
                                     {bind_ip, "bind_ip"},
                                     {admin_password, "admin_password"}});
    if (!given) return given.problem();
    if (admin_userid != std::string_view{"lightq_admin"})
      return refusal("the administrator of a broker is lightq_admin");
    if (transport != std::string_view{"tcp"}) return refusal("the only transport is tcp");
    if (bind_port == 0 || bind_port > 65535)
      return refusal("port " + std::to_string(bind_port) + " is none: 1 to 65535 are");
    auto manager = std::make_unique<lightq_broker_mgr>();
    const std::string uri = std::string{"tcp://"} + bind_ip + ":" + std::to_string(bind_port);
    if (auto copied = copy_to(manager->broker_uri, {uri.c_str(), "bind_ip"}); !copied)
      return copied.problem();
    auto broker = BrokerProcess::start({admin_password, bind_ip, bind_port});
    if (!broker) return broker.problem();
    manager->broker = broker->release();
    return manager.release();
  });
}

void free_broker_mgr(lightq_broker_mgr* manager) {
  if (manager == nullptr) return;
  delete static_cast<BrokerProcess*>(manager->broker);
  delete manager;
}

bool run_broker(lightq_broker_mgr* manager, bool block) {
  return guarded("run_broker", false, [&]() -> Outcome<bool> {
    if (manager == nullptr) return refusal("the broker is NULL");
    auto& process = *static_cast<BrokerProcess*>(manager->broker);
    return block ? process.wait() : process.is_running();
  });
}

// --- Small things --------------------------------------------------------------------------------

unsigned long get_current_time_millsec(void) {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<unsigned long>(
      std::chrono::duration_cast<std::chrono::milliseconds>(since_1970).count());
}

void generate_random_string(char* buffer, int size) {
  constexpr char kLetters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  if (buffer == nullptr || size < 0) return;
  noted("generate_random_string", [&]() -> Outcome<void> {
    thread_local std::minstd_rand random{std::random_device{}()};
    std::uniform_int_distribution<std::size_t> place{0, sizeof kLetters - 2};
    std::generate_n(buffer, size, [&] { return kLetters[place(random)]; });
    return {};
  });
  buffer[size] = '\0';
}

void sleep_ms(unsigned milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds{milliseconds});
}

}  // extern "C"
