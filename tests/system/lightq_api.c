/* A program of LightQ's C functions, for test_lightq_api.py. The first argument says what it does; it prints a line for each
 * result, and exits with 1 when something is not as it must be. */
#include <inttypes.h>
#include <leat/lightq_api.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REQUIRE(condition)                                             \
  do {                                                                 \
    if (!(condition)) {                                                \
      printf("line %d: not true: %s\n", __LINE__, #condition);         \
      exit(1);                                                         \
    }                                                                  \
  } while (0)

static char large[1024 * 1024 + 1];

/* URI ADMIN-PASSWORD: makes topics, sends, receives, asks for statistics. */
static void talk(const char* uri, const char* admin_password) {
  REQUIRE(create_topic(uri, "test", "lightq_admin", admin_password, "ann", "secret", queue_type));
  REQUIRE(!create_topic(uri, "test", "lightq_admin", admin_password, "ann", "secret", queue_type));
  REQUIRE(!create_topic(uri, "other", "lightq_admin", "wrong", "ann", "secret", queue_type));
  REQUIRE(create_topic(uri, "kept", "lightq_admin", admin_password, "ann", "secret", file_type));
  REQUIRE(!create_topic(uri, "../x", "lightq_admin", admin_password, "ann", "secret", queue_type));
  REQUIRE(!create_topic(uri, "x", "lightq_admin", admin_password, "ann", "secret",
                        (broker_storage_type)7));

  REQUIRE(init_producer("ann", "wrong", "test", uri) == NULL);
  REQUIRE(init_producer("ann", "secret", "missing", uri) == NULL);
  REQUIRE(init_consumer("ann", "wrong", "test", uri, zmq_consumer) == NULL);

  lightq_consumer_conn* consumer = init_consumer("ann", "secret", "test", uri, zmq_consumer);
  REQUIRE(consumer != NULL && consumer->socket_type == zmq_consumer);
  lightq_producer_conn* producer = init_producer("ann", "secret", "test", uri);
  REQUIRE(producer != NULL && strcmp(producer->topic_type, "queue") == 0);
  REQUIRE(strcmp(producer->conn->topic, "test") == 0 && strcmp(producer->conn->userid, "ann") == 0);
  REQUIRE(!producer->delay_pub_on_slow_consumer);
  REQUIRE(producer->pubDelayAlgorithm == publish_delay_algorithm);

  char buffer[1024];
  REQUIRE(publish_message(producer, "hello", 5) == 5);
  REQUIRE(receive_message(consumer, buffer, sizeof buffer) == 5 && memcmp(buffer, "hello", 5) == 0);
  REQUIRE(publish_message(producer, "", 0) == 0 && publish_message(producer, NULL, 0) == 0);
  REQUIRE(receive_message(consumer, buffer, sizeof buffer) == 0);
  REQUIRE(receive_message(consumer, buffer, sizeof buffer) == 0);

  /* A message that does not fit stays, and nothing is written behind the buffer. */
  REQUIRE(publish_message(producer, "0123456789", 10) == 10);
  memset(buffer, '#', sizeof buffer);
  REQUIRE(receive_message(consumer, buffer, 9) == -1 && buffer[0] == '#');
  REQUIRE(receive_message(consumer, buffer, 10) == 10 && memcmp(buffer, "0123456789#", 11) == 0);

  /* The limit is 1 MiB. */
  memset(large, 'x', sizeof large);
  REQUIRE(publish_message(producer, large, sizeof large) == -1);
  REQUIRE(publish_message(producer, large, sizeof large - 1) == 1024 * 1024);
  memset(large, 0, sizeof large);
  REQUIRE(receive_message(consumer, large, sizeof large) == 1024 * 1024);
  REQUIRE(large[0] == 'x' && large[1024 * 1024 - 1] == 'x' && large[1024 * 1024] == 0);
  REQUIRE(producer->conn->message_counter == 5);
  REQUIRE(producer->conn->payload_size_counter == 15 + 1024 * 1024);
  REQUIRE(consumer->p_lightq_conn->message_counter == 5);

  topic_stats stats;
  for (int i = 0; i < 500; ++i) {  /* The last acknowledgement is on its way. */
    REQUIRE(get_stats(producer->conn, &stats));
    if (stats.queue_size == 0) break;
    sleep_ms(10);
  }
  REQUIRE(strcmp(stats.status, "ok") == 0 && strcmp(stats.topic, "test") == 0);
  REQUIRE(strcmp(stats.topic_type, "queue") == 0);
  REQUIRE(stats.messages_received == 5 && stats.messages_sent == 5 && stats.queue_size == 0);
  REQUIRE(stats.publishers_count == 1 && stats.subscribers_count == 1);
  free_consumer_conn(consumer);

  /* What a consumer did not receive goes to the next one. */
  for (int i = 0; i < 10; ++i) REQUIRE(publish_message(producer, buffer, 10) == 10);
  free_producer_conn(producer);
  consumer = init_consumer("ann", "secret", "test", uri, socket_consumer);
  for (int i = 0; i < 3; ++i) REQUIRE(receive_message(consumer, buffer, sizeof buffer) == 10);
  free_consumer_conn(consumer);
  consumer = init_consumer("ann", "secret", "test", uri, socket_consumer);
  for (int i = 0; i < 7; ++i) REQUIRE(receive_message(consumer, buffer, sizeof buffer) == 10);
  free_consumer_conn(consumer);
}

/* URI ADMIN-PASSWORD: everything that cannot be. */
static void refuse(const char* uri, const char* password) {
  char longer[300];
  memset(longer, 'a', sizeof longer - 1);
  longer[sizeof longer - 1] = '\0';
  REQUIRE(init_producer(NULL, "p", "t", uri) == NULL && init_producer("u", NULL, "t", uri) == NULL);
  REQUIRE(init_producer("u", "p", NULL, uri) == NULL && init_producer("u", "p", "t", NULL) == NULL);
  REQUIRE(init_consumer(NULL, "p", "t", uri, zmq_consumer) == NULL);
  REQUIRE(init_consumer("u", "p", "t", NULL, zmq_consumer) == NULL);
  REQUIRE(init_producer(longer, "p", "t", uri) == NULL);
  REQUIRE(init_producer("u", longer, "t", uri) == NULL);
  REQUIRE(init_producer("u", "p", longer, uri) == NULL);
  REQUIRE(init_producer("u", "p", "t", longer) == NULL);
  REQUIRE(init_producer("u", "p", "t", "") == NULL);
  REQUIRE(init_producer("u", "p", "t", "ipc://*:5500") == NULL);
  REQUIRE(init_producer("u", "p", "t", "tcp://127.0.0.1:1") == NULL);
  REQUIRE(init_consumer("u", "p", "t", uri, (consumer_socket_type)9) == NULL);
  REQUIRE(!create_topic(NULL, "t", "lightq_admin", password, "u", "p", queue_type));
  REQUIRE(!create_topic(uri, NULL, "lightq_admin", password, "u", "p", queue_type));
  REQUIRE(!create_topic(uri, "t", NULL, password, "u", "p", queue_type));
  REQUIRE(!create_topic(uri, "t", "lightq_admin", NULL, "u", "p", queue_type));
  REQUIRE(!create_topic(uri, "t", "lightq_admin", password, NULL, "p", queue_type));
  REQUIRE(!create_topic(uri, "t", "lightq_admin", password, "u", NULL, queue_type));
  REQUIRE(!create_topic(uri, longer, "lightq_admin", password, "u", "p", queue_type));
  REQUIRE(publish_message(NULL, "x", 1) == -1);
  REQUIRE(receive_message(NULL, longer, sizeof longer) == -1);
  REQUIRE(!get_stats(NULL, NULL));
  topic_stats stats;
  REQUIRE(!get_stats(NULL, &stats) && strcmp(stats.status, "error") == 0);
  free_producer_conn(NULL);
  free_consumer_conn(NULL);
  free_broker_mgr(NULL);
  publish_delay_algorithm(NULL);
  REQUIRE(!run_broker(NULL, true) && !run_broker(NULL, false));
  REQUIRE(init_broker("root", "p", "tcp", "*", 5500) == NULL);
  REQUIRE(init_broker("lightq_admin", "p", "ipc", "*", 5500) == NULL);
  REQUIRE(init_broker("lightq_admin", "p", "tcp", "*", 0) == NULL);
  REQUIRE(init_broker("lightq_admin", "p", "tcp", "*", 65536) == NULL);
  REQUIRE(init_broker("lightq_admin", "", "tcp", "*", 5500) == NULL);
  REQUIRE(init_broker("lightq_admin", NULL, "tcp", "*", 5500) == NULL);
  REQUIRE(init_broker("lightq_admin", "p", "tcp", NULL, 5500) == NULL);
  REQUIRE(init_broker("lightq_admin", "p", "tcp", longer, 5500) == NULL);

  lightq_producer_conn* producer = init_producer("ann", "secret", "test", uri);
  REQUIRE(producer != NULL);
  REQUIRE(publish_message(producer, NULL, 1) == -1);
  lightq_consumer_conn* consumer = init_consumer("ann", "secret", "test", uri, zmq_consumer);
  REQUIRE(receive_message(consumer, NULL, 1) == -1);
  free_consumer_conn(consumer);
  free_producer_conn(producer);
}

/* DIRECTORY: what needs no broker. */
static void small_things(const char* directory) {
  REQUIRE(!init_log(NULL, "x", LOG_EVENT) && !init_log(directory, NULL, LOG_EVENT));
  REQUIRE(!init_log("/nowhere/at/all", "x", LOG_EVENT));
  REQUIRE(!init_log(directory, "x", (lightq_loglevel)10));
  REQUIRE(init_log(directory, "/usr/bin/program", LOG_ERROR));
  REQUIRE(!set_loglevel((lightq_loglevel)-1) && set_loglevel(LOG_OFF));
  REQUIRE(init_producer("hidden", "p", "t", "nonsense") == NULL);
  REQUIRE(set_loglevel(LOG_TRACE));
  REQUIRE(init_producer("u", "p", "t", "nonsense") == NULL);
  REQUIRE(str_to_loglevel("trace") == LOG_TRACE && str_to_loglevel("off") == LOG_OFF);
  REQUIRE(str_to_loglevel("warn") == LOG_WARNING && str_to_loglevel("emerg") == LOG_EMERG);
  REQUIRE(str_to_loglevel("other") == LOG_EVENT && str_to_loglevel(NULL) == LOG_EVENT);
  char text[12];
  memset(text, '#', sizeof text);
  generate_random_string(text, 10);
  REQUIRE(strlen(text) == 10 && text[11] == '#');
  REQUIRE(strspn(text, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == 10);
  generate_random_string(text, 0);
  REQUIRE(text[0] == '\0');
  generate_random_string(text, -5);
  generate_random_string(NULL, 5);
  const unsigned long before = get_current_time_millsec();
  sleep_ms(30);
  REQUIRE(get_current_time_millsec() >= before + 25 && before > 1700000000000UL);
}

/* URI COUNT: sends numbers until the broker is gone. */
static void produce(const char* uri, int count) {
  lightq_producer_conn* producer = init_producer("ann", "secret", "test", uri);
  REQUIRE(producer != NULL);
  producer->delay_pub_on_slow_consumer = true;
  char text[20];
  int sent = 0;
  while (sent < count) {
    const int size = snprintf(text, sizeof text, "%d", sent);
    if (publish_message(producer, text, (unsigned)size) != size) break;
    ++sent;
  }
  printf("sent %d\n", sent);
  fflush(stdout);
  free_producer_conn(producer);
}

/* URI: prints what comes until the broker is gone. */
static void consume(const char* uri) {
  lightq_consumer_conn* consumer = init_consumer("ann", "secret", "test", uri, zmq_consumer);
  REQUIRE(consumer != NULL);
  int size;
  while ((size = receive_message(consumer, large, sizeof large)) >= 0) {
    printf("%.*s\n", size, large);
    fflush(stdout);
  }
  REQUIRE(receive_message(consumer, large, sizeof large) == -1);
  printf("gone\n");
  free_consumer_conn(consumer);
}

/* PORT PASSWORD: runs a broker; "wait" waits for it, "leave" dies without ending it. */
static void broker(unsigned port, const char* password, const char* then) {
  lightq_broker_mgr* manager = init_broker("lightq_admin", password, "tcp", "*", port);
  REQUIRE(manager != NULL);
  REQUIRE(run_broker(manager, false));
  char uri[64];
  snprintf(uri, sizeof uri, "tcp://127.0.0.1:%u", port);
  (void)create_topic(uri, "test", "lightq_admin", password, "ann", "secret", queue_type);
  lightq_producer_conn* producer = init_producer("ann", "secret", "test", uri);
  REQUIRE(producer != NULL && publish_message(producer, "mine", 4) == 4);
  free_producer_conn(producer);
  /* A second one at the same port. */
  REQUIRE(init_broker("lightq_admin", password, "tcp", "127.0.0.1", port) == NULL);
  printf("ready %s\n", manager->broker_uri);
  fflush(stdout);
  if (strcmp(then, "wait") == 0) printf("ended %d\n", run_broker(manager, true));
  if (strcmp(then, "leave") == 0) raise(SIGKILL);
  if (strcmp(then, "free") == 0) free_broker_mgr(manager);
  printf("after\n");
}

int main(int argc, char** argv) {
  REQUIRE(argc >= 3);
  const char* logs = getenv("LOGS");
  if (logs != NULL) REQUIRE(init_log(logs, argv[0], LOG_EVENT));
  if (strcmp(argv[1], "talk") == 0) talk(argv[2], argv[3]);
  if (strcmp(argv[1], "refuse") == 0) refuse(argv[2], argv[3]);
  if (strcmp(argv[1], "small") == 0) small_things(argv[2]);
  if (strcmp(argv[1], "produce") == 0) produce(argv[2], atoi(argv[3]));
  if (strcmp(argv[1], "consume") == 0) consume(argv[2]);
  if (strcmp(argv[1], "broker") == 0) broker((unsigned)atoi(argv[2]), argv[3], argv[4]);
  printf("done\n");
  return 0;
}
