// What a record costs in C, for `leat bench clients`: c TOPIC SIZE RECORDS. Prints nanoseconds as a line of JSON.
//
// The topic holds all records. Each part runs twice, and the second time counts.
#define _POSIX_C_SOURCE 200809L
#include <leat/leat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kBatch = 64 };

static uint64_t records = 0;
static uint64_t size = 0;
static char *value = NULL;
static char *copy = NULL;
static leat_bytes values[kBatch];
static volatile uint64_t seen = 0;  // So that the compiler cannot leave out looking at the values.

static void check(int32_t code, const char *what) {
  if (code == LEAT_OK) return;
  fprintf(stderr, "cannot %s: %s\n", what, leat_error_name(code));
  exit(1);
}

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void publish(leat_publisher *publisher) {
  for (uint64_t i = 0; i < records; ++i) {
    check(leat_publisher_publish(publisher, value, size, LEAT_FOREVER, NULL, NULL), "publish");
  }
}

static void publish_batches(leat_publisher *publisher) {
  for (uint64_t i = 0; i < records; i += kBatch) {
    check(leat_publisher_publish_batch(publisher, values, kBatch, LEAT_ANY_PARTITION, LEAT_FOREVER, NULL, NULL),
          "publish a batch");
  }
}

static double time_publishing(leat_topic *topic, void (*work)(leat_publisher *)) {
  leat_publisher *publisher = NULL;
  check(leat_topic_publisher(topic, NULL, &publisher, NULL), "make a publisher");
  work(publisher);
  const double begin = now_ns();
  work(publisher);
  const double end = now_ns();
  leat_publisher_close(&publisher);
  return (end - begin) / (double)records;
}

// Reads the last records of the topic, in place or, with `copies`, each into memory of its own.
static double read_all(leat_topic *topic, int copies) {
  leat_subscriber_options options = LEAT_SUBSCRIBER_OPTIONS_INIT;
  leat_subscriber *subscriber = NULL;
  leat_record batch[kBatch];
  uint64_t sum = 0;
  uint32_t count = 0;
  options.from = LEAT_FROM_LAST;
  options.from_value = records;
  check(leat_topic_subscriber(topic, &options, &subscriber, NULL), "make a subscriber");
  const double begin = now_ns();
  for (uint64_t left = records; left != 0; left -= count) {
    check(leat_subscriber_poll(subscriber, batch, kBatch, &count, NULL), "poll");
    for (uint32_t i = 0; i < count; ++i) {
      const uint8_t *bytes = batch[i].value;
      if (copies) bytes = memcpy(copy + i * size, bytes, size);
      sum += bytes[size - 1];
    }
  }
  const double end = now_ns();
  seen = sum;
  leat_subscriber_close(&subscriber);
  return (end - begin) / (double)records;
}

int main(int argc, char **argv) {
  leat_topic *topic = NULL;
  if (argc != 4) {
    fprintf(stderr, "usage: c TOPIC SIZE RECORDS\n");
    return 2;
  }
  size = strtoull(argv[2], NULL, 10);
  records = strtoull(argv[3], NULL, 10);
  value = calloc(1, size);
  copy = calloc(kBatch, size);
  for (int i = 0; i < kBatch; ++i) values[i] = (leat_bytes){value, size};
  check(leat_topic_open(argv[1], LEAT_TEXT, 0, NULL, &topic, NULL), "open the topic");
  const double publish_ns = time_publishing(topic, publish);
  const double batch_ns = time_publishing(topic, publish_batches);
  read_all(topic, 1);
  const double read_ns = read_all(topic, 1);
  read_all(topic, 0);
  const double view_ns = read_all(topic, 0);
  printf("{\"runtime\": \"GCC %d.%d\", \"publish_ns\": %.2f, \"batch_ns\": %.2f, \"read_ns\": %.2f, \"view_ns\": %.2f}\n",
         __GNUC__, __GNUC_MINOR__, publish_ns, batch_ns, read_ns, view_ns);
  leat_topic_close(&topic);
  return 0;
}
