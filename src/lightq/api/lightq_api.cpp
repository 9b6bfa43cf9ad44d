// LightQ's C functions. The rules for callers are in the header; here: nothing throws across `extern "C"`, texts are
// copied only where they fit, and each failure is a line in the log.
#include <leat/lightq_api.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <random>
#include <string_view>
#include <thread>

#include "broker_process.hpp"
#include "lightq/client/data.hpp"
#include "log.hpp"

namespace {

using namespace leat::lightq;
using leat::Bytes;
using leat::Deadline;
using leat::Errc;
using leat::lightq_api::BrokerProcess;
using leat::lightq_api::log;

constexpr unsigned kLargestMessage = 1024 * 1024;

// Runs `call`; what it throws becomes a line in the log, and `failed` the result.
template <class Result, class Call>
Result guarded(const char* function, Result failed, Call&& call) noexcept {
  try {
    return call();
  } catch (const std::exception& error) {
    try {
      log().write(LOG_ERROR, std::string{function} + ": " + error.what());
    } catch (...) {
    }
  }
  return failed;
}

[[noreturn]] void refuse(const std::string& why) { throw Problem{Errc::invalid_argument, why}; }

// Copies a text that fits, with its null byte.
template <std::size_t N>
void copy_to(char (&place)[N], const char* text, const char* what) {
  if (text == nullptr) refuse(std::string{what} + " is NULL");
  const std::size_t size = ::strnlen(text, N);
  if (size == N) refuse(std::string{what} + " has more than " + std::to_string(N - 1) + " bytes");
  std::memcpy(place, text, size + 1);
}

// The same for what a broker said: cut where it does not fit.
template <std::size_t N>
void copy_part_to(char (&place)[N], std::string_view text) noexcept {
  const std::size_t size = std::min(text.size(), N - 1);
  std::memcpy(place, text.data(), size);
  place[size] = '\0';
}

std::string text_of(const char* text, const char* what) {
  if (text == nullptr) refuse(std::string{what} + " is NULL");
  return text;
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

Conn make_conn(const char* userid, const char* password, const char* topic,
               const char* broker_uri) {
  Conn conn{new lightq_conn{}};
  copy_to(conn->userid, userid, "userid");
  copy_to(conn->password, password, "password");
  copy_to(conn->topic, topic, "topic");
  copy_to(conn->broker_uri, broker_uri, "broker_uri");
  return conn;
}

// Its connection to the administration, made if there is none.
Admin& admin_of(lightq_conn& conn) {
  if (conn.admin_conn == nullptr)
    conn.admin_conn = new Admin{parse_tcp_uri(conn.broker_uri), to_connect()};
  return *static_cast<Admin*>(conn.admin_conn);
}

Credentials credentials_of(const lightq_conn& conn) { return {conn.userid, conn.password}; }

Joined join(lightq_conn& conn, Role role) {
  return admin_of(conn).join(conn.topic, credentials_of(conn), role, to_answer());
}

// After other refusals than these, the connection is of no more use.
bool is_answer(Errc code) noexcept {
  return code == Errc::permission || code == Errc::not_found || code == Errc::busy ||
         code == Errc::invalid_argument || code == Errc::unsupported;
}

Stats stats_of(lightq_conn& conn) {
  try {
    return admin_of(conn).stats(conn.topic, credentials_of(conn), to_answer());
  } catch (const Problem& problem) {
    if (!is_answer(problem.code()))
      delete static_cast<Admin*>(std::exchange(conn.admin_conn, nullptr));
    throw;
  }
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

const char* word_for_type(broker_storage_type type) {
  switch (type) {
    case queue_type: return "queue";
    case file_type: return "file";
    case direct_type: return "direct";
    case queue_file_type: return "queue_file";
  }
  refuse("storage_type " + std::to_string(static_cast<int>(type)) + " is none");
}

}  // namespace

extern "C" {

// --- Log -----------------------------------------------------------------------------------------

bool init_log(const char* logdir, const char* process_name, lightq_loglevel level) {
  if (logdir == nullptr || process_name == nullptr) return false;
  return guarded("init_log", false, [&] { return log().open(logdir, process_name, level); });
}

bool set_loglevel(lightq_loglevel level) {
  return guarded("set_loglevel", false, [&] { return log().set_level(level); });
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
  return guarded("init_producer", static_cast<lightq_producer_conn*>(nullptr), [&] {
    Conn conn = make_conn(userid, password, topic, broker_uri);
    auto producer = std::make_unique<lightq_producer_conn>();
    producer->pubDelayAlgorithm = &publish_delay_algorithm;
    copy_part_to(producer->topic_type, stats_of(*conn).topic_type);
    conn->client_conn =
        new Producer{join(*conn, Role::producer), {.collect_bytes = 0}, to_connect()};
    producer->conn = conn.release();
    return producer.release();
  });
}

void free_producer_conn(lightq_producer_conn* producer) {
  if (producer == nullptr) return;
  const Conn conn{producer->conn};
  delete producer;
  const std::unique_ptr<Producer> client{static_cast<Producer*>(conn->client_conn)};
  guarded("free_producer_conn", false, [&] {
    client->wait_published(client->sent(), to_answer());
    return true;
  });
}

int publish_message(lightq_producer_conn* producer, const char* message, unsigned length) {
  return guarded("publish_message", -1, [&] {
    if (producer == nullptr) refuse("the producer is NULL");
    if (message == nullptr && length != 0) refuse("the message is NULL");
    if (length > kLargestMessage)
      refuse("a message of " + std::to_string(length) + " bytes; the most is 1 MiB");
    auto& client = *static_cast<Producer*>(producer->conn->client_conn);
    client.publish({message, length});
    client.flush();
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
  guarded("publish_delay_algorithm", false, [&] {
    const std::uint64_t size = stats_of(*producer->conn).queue_size;
    const std::uint64_t before = std::exchange(producer->last_queue_size, size);
    if (size > kMany) {
      std::this_thread::sleep_for(std::chrono::milliseconds{size / 1000});
    } else if (size > before) {
      std::this_thread::sleep_for(std::chrono::milliseconds{(size - before) / 100});
    }
    return true;
  });
}

// --- Consumers -----------------------------------------------------------------------------------

lightq_consumer_conn* init_consumer(const char* userid, const char* password, const char* topic,
                                    const char* broker_uri, consumer_socket_type type) {
  return guarded("init_consumer", static_cast<lightq_consumer_conn*>(nullptr), [&] {
    if (type != zmq_consumer && type != socket_consumer) refuse("the type is none");
    Conn conn = make_conn(userid, password, topic, broker_uri);
    auto consumer = std::make_unique<lightq_consumer_conn>();
    consumer->socket_type = type;
    conn->client_conn =
        new Receiver{{join(*conn, Role::puller), {.acknowledges = true}, to_connect()}};
    consumer->p_lightq_conn = conn.release();
    return consumer.release();
  });
}

void free_consumer_conn(lightq_consumer_conn* consumer) {
  if (consumer == nullptr) return;
  const Conn conn{consumer->p_lightq_conn};
  delete consumer;
  const std::unique_ptr<Receiver> receiver{static_cast<Receiver*>(conn->client_conn)};
  guarded("free_consumer_conn", false, [&] {
    receiver->consumer.finish(to_connect());
    return true;
  });
}

int receive_message(lightq_consumer_conn* consumer, char* buffer, unsigned buffer_length) {
  return guarded("receive_message", -1, [&] {
    if (consumer == nullptr) refuse("the consumer is NULL");
    if (buffer == nullptr) refuse("the buffer is NULL");
    auto& receiver = *static_cast<Receiver*>(consumer->p_lightq_conn->client_conn);
    auto& waiting = receiver.waiting;
    while (!waiting) waiting = receiver.consumer.next();
    if (waiting->size() > buffer_length) {
      refuse("a message of " + std::to_string(waiting->size()) + " bytes, and a buffer of " +
             std::to_string(buffer_length));
    }
    const std::size_t size = waiting->size();
    std::copy_n(waiting->text().data(), size, buffer);
    waiting.reset();
    receiver.consumer.acknowledge();
    count(*consumer->p_lightq_conn, size);
    // One acknowledgement for all that came together.
    if (!receiver.consumer.has_next()) {
      guarded("receive_message", false, [&] {
        receiver.consumer.send_count();
        return true;
      });
    }
    return static_cast<int>(size);
  });
}

// --- Administration ------------------------------------------------------------------------------

bool get_stats(lightq_conn* conn, topic_stats* stats) {
  if (stats == nullptr) return false;
  *stats = {};
  copy_part_to(stats->status, "error");
  return guarded("get_stats", false, [&] {
    if (conn == nullptr) refuse("the connection is NULL");
    const Stats got = stats_of(*conn);
    copy_part_to(stats->status, "ok");
    copy_part_to(stats->topic, got.topic);
    copy_part_to(stats->topic_type, got.topic_type);
    stats->queue_size = got.queue_size;
    stats->messages_sent = got.messages_sent;
    stats->messages_received = got.messages_received;
    stats->publishers_count = got.publishers_count;
    stats->subscribers_count = got.subscribers_count;
    stats->total_bytes_written = got.total_bytes_written;
    stats->total_bytes_read = got.total_bytes_read;
    return true;
  });
}

bool create_topic(const char* broker_uri, const char* topic, const char* admin_userid,
                  const char* admin_password, const char* userid, const char* password,
                  broker_storage_type storage_type) {
  return guarded("create_topic", false, [&] {
    const NewTopic wanted{.name = text_of(topic, "topic"),
                          .type = word_for_type(storage_type),
                          .user = {text_of(userid, "userid"), text_of(password, "password")}};
    const Credentials administrator{text_of(admin_userid, "admin_userid"),
                                    text_of(admin_password, "admin_password")};
    Admin admin{parse_tcp_uri(text_of(broker_uri, "broker_uri")), to_connect()};
    admin.create_topic(administrator, wanted, to_answer());
    return true;
  });
}

// --- The broker ----------------------------------------------------------------------------------

lightq_broker_mgr* init_broker(const char* admin_userid, const char* admin_password,
                               const char* transport, const char* bind_ip, unsigned bind_port) {
  return guarded("init_broker", static_cast<lightq_broker_mgr*>(nullptr), [&] {
    if (text_of(admin_userid, "admin_userid") != "lightq_admin")
      refuse("the administrator of a broker is lightq_admin");
    if (text_of(transport, "transport") != "tcp") refuse("the only transport is tcp");
    if (bind_port == 0 || bind_port > 65535)
      refuse("port " + std::to_string(bind_port) + " is none: 1 to 65535 are");
    auto manager = std::make_unique<lightq_broker_mgr>();
    const std::string ip = text_of(bind_ip, "bind_ip");
    const std::string uri = "tcp://" + ip + ":" + std::to_string(bind_port);
    copy_to(manager->broker_uri, uri.c_str(), "bind_ip");
    manager->broker = new BrokerProcess{{text_of(admin_password, "admin_password"), ip, bind_port}};
    return manager.release();
  });
}

void free_broker_mgr(lightq_broker_mgr* manager) {
  if (manager == nullptr) return;
  delete static_cast<BrokerProcess*>(manager->broker);
  delete manager;
}

bool run_broker(lightq_broker_mgr* manager, bool block) {
  return guarded("run_broker", false, [&] {
    if (manager == nullptr) refuse("the broker is NULL");
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
  guarded("generate_random_string", false, [&] {
    thread_local std::minstd_rand random{std::random_device{}()};
    std::uniform_int_distribution<std::size_t> place{0, sizeof kLetters - 2};
    std::generate_n(buffer, size, [&] { return kLetters[place(random)]; });
    return true;
  });
  buffer[size] = '\0';
}

void sleep_ms(unsigned milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds{milliseconds});
}

}  // extern "C"
