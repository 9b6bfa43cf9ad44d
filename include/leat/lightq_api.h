/* LightQ's C functions, on a client of `leat serve`. For C99 and later, and for C++. Link with -lleat-lightq.
 *
 *     create_topic("tcp://127.0.0.1:5500", "news", "lightq_admin", "…", "ann", "…", queue_type);
 *     lightq_producer_conn* producer = init_producer("ann", "…", "news", "tcp://127.0.0.1:5500");
 *     if (producer == NULL || publish_message(producer, "hello", 5) != 5) …
 *     free_producer_conn(producer);
 *
 * Names, structs and results are LightQ's. What is different, and why: docs/guide/lightq.md, "The C functions".
 *
 * A connection belongs to one thread at a time, and not to a forked child; different connections are independent.
 * create_topic, str_to_loglevel, the clock, the random string and the log may be used by any thread. No function throws or
 * ends the program. Texts end with a null byte and are UTF-8; one that is NULL or does not fit into its struct makes the
 * call fail. Connecting takes at most 5 s, an answer of the broker 20 s. Why a call failed is in the log (init_log).
 *
 * Include it without <syslog.h>, whose macros have the names of the log levels. */
#ifndef LEAT_LIGHTQ_API_H
#define LEAT_LIGHTQ_API_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
#define LEAT_LIGHTQ_DEFAULT(value) = value
#define LEAT_LIGHTQ_INT : int /* A program in C may pass any number. */
extern "C" {
#else
#define LEAT_LIGHTQ_DEFAULT(value)
#define LEAT_LIGHTQ_INT
#endif

typedef enum lightq_loglevel LEAT_LIGHTQ_INT {
  LOG_TRACE = 0,
  LOG_DEBUG,
  LOG_INFO,
  LOG_EVENT,
  LOG_WARNING,
  LOG_ERROR,
  LOG_CRITICAL,
  LOG_ALERT,
  LOG_EMERG,
  LOG_OFF
} lightq_loglevel;

typedef enum broker_storage_type LEAT_LIGHTQ_INT {
  queue_type = 0, /* in memory */
  file_type,      /* durable */
  direct_type,    /* as queue_type */
  queue_file_type /* as file_type */
} broker_storage_type;

/* Both use the same connection here. */
typedef enum consumer_socket_type LEAT_LIGHTQ_INT {
  zmq_consumer = 0,
  socket_consumer
} consumer_socket_type;

typedef struct topic_stats {
  char status[128]; /* "ok" or "error" */
  char topic[256];
  char topic_type[256]; /* "queue", "file", "direct", "queue_file" */
  uint64_t queue_size;  /* messages that wait for pullers */
  uint64_t messages_sent;
  uint64_t messages_received;
  uint64_t publishers_count;
  uint64_t subscribers_count;   /* pullers, and subscribers that have subscribed */
  uint64_t total_bytes_written; /* of messages, from producers since the broker began */
  uint64_t total_bytes_read;    /* the same, to consumers */
} topic_stats;

/* May be read, not written. */
typedef struct lightq_conn {
  void* client_conn;
  void* admin_conn;
  char topic[256];
  char userid[128];
  char password[128];
  char broker_uri[256];
  uint64_t message_counter;      /* messages published or received */
  uint64_t payload_size_counter; /* their bytes */
} lightq_conn;

typedef struct lightq_producer_conn {
  lightq_conn* conn;
  uint64_t last_queue_size; /* of publish_delay_algorithm */
  char topic_type[256];
  bool delay_pub_on_slow_consumer;  /* call the next one after each message; at first false */
  void (*pubDelayAlgorithm)(void*); /* gets the lightq_producer_conn; at first publish_delay_algorithm */
} lightq_producer_conn;

typedef struct lightq_consumer_conn {
  lightq_conn* p_lightq_conn;
  consumer_socket_type socket_type;
} lightq_consumer_conn;

typedef struct lightq_broker_mgr {
  void* broker;
  char broker_uri[256];
} lightq_broker_mgr;

/* Writes the reasons of failures to <logdir>/<process_name>_<pid>.log.txt, from `level` on. Of the process's name only what
 * follows the last slash counts. At 500 MiB the file becomes ....log.1.txt, and so on: at most 10 files are kept. The directory
 * must exist. False if the file cannot be written, or something is NULL. Called again, it goes on in the new file. Without it
 * nothing is logged. */
bool init_log(const char* logdir, const char* process_name,
              lightq_loglevel level LEAT_LIGHTQ_DEFAULT(LOG_EVENT));
/* False for a number that is no level. */
bool set_loglevel(lightq_loglevel level);

/* Joins a topic as a producer. `broker_uri` is tcp://HOST:PORT of the administration. NULL if it failed. */
lightq_producer_conn* init_producer(const char* userid, const char* password, const char* topic,
                                    const char* broker_uri);
/* Waits until the broker has all messages, at most 20 s, then frees. NULL does nothing. A program that exits without it
 * may lose the last messages. */
void free_producer_conn(lightq_producer_conn* producer);
/* Hands a message of at most 1 MiB to the system, which sends it at once. Waits, without a limit, while the topic is full.
 * Returns `length`, or -1: nothing was sent, or the connection has ended, and a new one is needed. */
int publish_message(lightq_producer_conn* producer, const char* message, unsigned length);

/* Joins a topic as a puller: its pullers share the messages. NULL if it failed. */
lightq_consumer_conn* init_consumer(const char* userid, const char* password, const char* topic,
                                    const char* broker_uri,
                                    consumer_socket_type type LEAT_LIGHTQ_DEFAULT(zmq_consumer));
/* Messages that were not received go to other pullers. NULL does nothing. */
void free_consumer_conn(lightq_consumer_conn* consumer);
/* Waits for a message, without a limit. Returns its length, which may be 0; or -1: the connection has ended, or the buffer
 * is too small. Then the message stays, for a call with a larger one: 1 MiB is enough unless the broker allows more. */
int receive_message(lightq_consumer_conn* consumer, char* buffer, unsigned buffer_length);

/* Asks for the statistics of the connection's topic. If false is returned, `status` is "error", and the rest is 0. A lost
 * connection to the administration is made anew. */
bool get_stats(lightq_conn* conn, topic_stats* stats);
/* Slows a producer down: every 250,000 messages, sleeps a millisecond for each 1000 that wait if more than 10,000 wait, or
 * for each 100 by which their number has grown. The broker itself stops producers of a full topic; nobody needs this. */
void publish_delay_algorithm(void* producer);

/* Starts a broker: `leat-serve` from beside this library, beside the program, or in $PATH, as a child process. Returns when
 * it answers; NULL if it does not. `admin_userid` must be "lightq_admin", `transport` "tcp". `bind_ip` is "*", for the
 * loopback addresses, or a numeric address; other machines can reach it only with LEAT_INSECURE=true in the environment. As
 * for `leat serve`, other settings come from LEAT_... variables, and topics outlive it. It ends when this process does. */
lightq_broker_mgr* init_broker(const char* admin_userid, const char* admin_password,
                               const char* transport, const char* bind_ip, unsigned bind_port);
/* Ends the broker, after it has published what it has received. NULL does nothing. */
void free_broker_mgr(lightq_broker_mgr* manager);
/* With `block`, waits until the broker ends; whether it ended without an error. Otherwise whether it runs. */
bool run_broker(lightq_broker_mgr* manager, bool block LEAT_LIGHTQ_DEFAULT(true));

/* Whether the topic was created: false also if it exists already. */
bool create_topic(const char* broker_uri, const char* topic, const char* admin_userid,
                  const char* admin_password, const char* userid, const char* password,
                  broker_storage_type storage_type);

/* Of trace, debug, info, event, warn, error, critical, alert, emerg, off; LOG_EVENT for anything else. */
lightq_loglevel str_to_loglevel(const char* text);
/* Milliseconds since 1970. */
unsigned long get_current_time_millsec(void);
/* Writes `size` letters and digits and a null byte: `buffer` has size + 1 bytes. Not for passwords. */
void generate_random_string(char* buffer, int size);
void sleep_ms(unsigned milliseconds);

#ifdef __cplusplus
}
#endif
#undef LEAT_LIGHTQ_DEFAULT
#undef LEAT_LIGHTQ_INT

#endif /* LEAT_LIGHTQ_API_H */
