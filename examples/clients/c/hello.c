/* Publishes a record and reads the topic back: gcc hello.c $(pkg-config --cflags --libs libleat) && ./a.out */
#include <err.h>
#include <leat/leat.h>
#include <stdio.h>

static void check(int32_t code) {
  if (code != LEAT_OK) errx(1, "%s", leat_error_name(code));
}

int main(void) {
  leat_topic *topic;
  leat_publisher *publisher;
  leat_subscriber *subscriber;
  leat_subscriber_options options = LEAT_SUBSCRIBER_OPTIONS_INIT;
  leat_record records[64];
  uint32_t count;

  check(leat_topic_open_or_create("greetings", LEAT_TEXT, NULL, &topic, NULL));
  check(leat_topic_publisher(topic, NULL, &publisher, NULL));
  check(leat_publisher_publish(publisher, "hello from C", 12, LEAT_FOREVER, NULL, NULL));
  options.from = LEAT_FROM_BEGINNING;
  check(leat_topic_subscriber(topic, &options, &subscriber, NULL));
  do {
    check(leat_subscriber_poll(subscriber, records, 64, &count, NULL));
    for (uint32_t i = 0; i < count; ++i)
      if (!leat_record_is_gap(&records[i])) printf("%.*s\n", (int)records[i].value_size, (const char *)records[i].value);
  } while (count > 0); /* Handles need not be closed before the process ends. */
}
