/* Publishes a record and reads the topic back: gcc hello.c $(pkg-config --cflags --libs libleat) && ./a.out */
#include <leat/leat.h>
#include <stdio.h>

#define TRY(call) do { int32_t code = (call); if (code != LEAT_OK) { fprintf(stderr, "%s\n", leat_error_name(code)); return 1; } } while (0)

int main(void) {
  leat_topic *topic = NULL;
  leat_publisher *publisher = NULL;
  leat_subscriber *subscriber = NULL;
  leat_subscriber_options options = LEAT_SUBSCRIBER_OPTIONS_INIT;
  leat_record records[64];
  uint32_t count = 0;

  TRY(leat_topic_open_or_create("greetings", LEAT_TEXT, NULL, &topic, NULL));
  TRY(leat_topic_publisher(topic, NULL, &publisher, NULL));
  TRY(leat_publisher_publish(publisher, "hello from C", 12, LEAT_FOREVER, NULL, NULL));
  options.from = LEAT_FROM_BEGINNING;
  TRY(leat_topic_subscriber(topic, &options, &subscriber, NULL));
  do {
    TRY(leat_subscriber_poll(subscriber, records, 64, &count, NULL));
    for (uint32_t i = 0; i < count; ++i)
      if (!leat_record_is_gap(&records[i])) printf("%.*s\n", (int)records[i].value_size, (const char *)records[i].value);
  } while (count > 0);
  leat_publisher_close(&publisher);
  leat_subscriber_close(&subscriber);
  return leat_topic_close(&topic);
}
