// The driver of the C client: README.md says what it reads and prints. If it did something else than a
// program in C would, all other clients would be compared with the wrong thing.
//
// In this order: handles, one function for each command, the loop.
#define _GNU_SOURCE
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "leat/leat.h"
#include "words.h"

enum { kMaxHandles = 64, kMaxHeaders = 16, kMaxDeliveries = 4096, kBatch = 64 };

// ---- Handles ------------------------------------------------------------------------------------

enum kind { kNone, kTopic, kPublisher, kSubscriber, kGroup, kMember };

struct handle {
  char name[32];
  enum kind kind;
  union {
    leat_topic *topic;
    leat_publisher *publisher;
    leat_subscriber *subscriber;
    leat_group *group;
    leat_member *member;
  } is;
  leat_claim claim;
  leat_delivery *deliveries;  // Of a member, in the order in which it got them.
  uint32_t delivery_count;
};
static struct handle handles[kMaxHandles];

static struct handle *find(const char *name) {
  for (int i = 0; i < kMaxHandles; ++i)
    if (handles[i].kind != kNone && strcmp(handles[i].name, name) == 0) return &handles[i];
  return NULL;
}
static struct handle *get(const struct command *command, int index, enum kind kind) {
  struct handle *found = find(word(command, index));
  if (found == NULL || found->kind != kind) fail("no such handle", word(command, index));
  return found;
}
static struct handle *make(const struct command *command, enum kind kind) {
  struct handle *made = find(word(command, 1));
  for (int i = 0; made == NULL && i < kMaxHandles; ++i)
    if (handles[i].kind == kNone) made = &handles[i];
  if (made == NULL) fail("too many handles", word(command, 1));
  memset(made, 0, sizeof(*made));
  snprintf(made->name, sizeof(made->name), "%s", word(command, 1));
  made->kind = kind;
  return made;
}
// A handle is there only if the call that made it succeeded.
static int32_t made(struct handle *handle, int32_t code) {
  if (code != LEAT_OK) handle->kind = kNone;
  return code;
}

// ---- Topics and publishers ----------------------------------------------------------------------

static int32_t create(struct command *command) {
  static const char *const policies[] = {"block", "fail", "overwrite", "grow", NULL};
  static const char *const levels[] = {"none", "os", "interval", "fsync", NULL};
  leat_topic_options options = LEAT_TOPIC_OPTIONS_INIT;
  const char *policy = option(command, "policy");
  const char *durable = option(command, "durable");
  struct handle *handle = make(command, kTopic);
  if (policy != NULL) options.policy = choice(policy, policies);
  if (durable != NULL) options.durable = choice(durable, levels);
  options.capacity_bytes = number(command, "capacity", 0);
  options.segment_bytes = number(command, "segment", 0);
  options.partitions = (uint32_t)number(command, "partitions", 1);
  options.timestamps = (uint32_t)number(command, "timestamps", 0);
  options.retain_all = (uint32_t)number(command, "retain_all", 0);
  options.sync_interval_ns = (int64_t)number(command, "sync_interval", 0) * 1000000;
  return made(handle,
              leat_topic_create(word(command, 2), LEAT_TEXT, &options, &handle->is.topic, NULL));
}
static int32_t open_topic(struct command *command) {
  struct handle *handle = make(command, kTopic);
  return made(handle, leat_topic_open(word(command, 2), LEAT_TEXT, timeout_ns(command, 0), NULL,
                                      &handle->is.topic, NULL));
}
static int32_t delete_topic(struct command *command) {
  leat_place place = LEAT_PLACE_INIT;
  place.force = (uint32_t)number(command, "force", 0);
  return leat_topic_delete(word(command, 1), LEAT_TEXT, &place, NULL);
}
static int32_t info(struct command *command) {
  leat_topic_info info = {0};
  leat_partition_info partitions[kBatch];
  uint64_t end = 0;
  info.size = sizeof(info);
  const int32_t code = leat_topic_get_info(get(command, 1, kTopic)->is.topic, &info, partitions,
                                           kBatch, NULL, 0, NULL);
  for (uint32_t i = 0; code == LEAT_OK && i < info.partition_count; ++i) end += partitions[i].end;
  snprintf(command->results, sizeof(command->results), " partitions=%u end=%" PRIu64,
           info.partition_count, end);
  return code;
}

static int32_t publisher(struct command *command) {
  static const char *const stages[] = {"default", "committed", "durable", NULL};
  leat_publisher_options options = LEAT_PUBLISHER_OPTIONS_INIT;
  const char *acknowledge = option(command, "acknowledge");
  leat_topic *topic = get(command, 2, kTopic)->is.topic;
  struct handle *handle = make(command, kPublisher);
  options.exclusive = (uint32_t)number(command, "exclusive", 0);
  options.partition = (uint32_t)number(command, "partition", LEAT_ANY_PARTITION);
  if (acknowledge != NULL) options.acknowledge = choice(acknowledge, stages);
  return made(handle, leat_topic_publisher(topic, &options, &handle->is.publisher, NULL));
}

static int32_t offset_result(struct command *command, int32_t code, uint64_t offset) {
  snprintf(command->results, sizeof(command->results), " offset=%" PRIu64, offset);
  return code;
}

static int32_t publish(struct command *command) {
  leat_new_record record = LEAT_NEW_RECORD_INIT;
  leat_new_header headers[kMaxHeaders];
  struct bytes parts[2 * kMaxHeaders + 2];
  uint32_t part_count = 0;
  uint64_t offset = 0;
  const char *text = option(command, "key");
  const struct bytes value = parts[part_count++] = value_of(command);
  record.value = (leat_bytes){value.data, value.size};
  if (text != NULL) {
    const struct bytes key = parts[part_count++] = decode(text, strlen(text));
    record.key = (leat_bytes){key.data, key.size};
  }
  for (int at = 1; (text = next_option(command, "header", &at)) != NULL; ++at) {
    const char *colon = strchr(text, ':');
    const struct bytes name = parts[part_count++] = decode(text, (uint64_t)(colon - text));
    const struct bytes rest = parts[part_count++] = decode(colon + 1, strlen(colon + 1));
    headers[record.header_count++] =
        (leat_new_header){{name.data, name.size}, {rest.data, rest.size}};
  }
  record.headers = headers;
  record.partition = (uint32_t)number(command, "partition", LEAT_ANY_PARTITION);
  const int32_t code = leat_publisher_publish_record(get(command, 1, kPublisher)->is.publisher,
                                                     &record, timeout_ns(command, 0), &offset, NULL);
  while (part_count != 0) free(parts[--part_count].data);
  return offset_result(command, code, offset);
}

static int32_t batch(struct command *command) {
  const char *prefix = option(command, "prefix");
  const uint64_t wanted = prefix != NULL ? number(command, "count", 1) : (uint64_t)command->count;
  leat_bytes *values = calloc(wanted, sizeof(*values));
  uint64_t count = 0;
  uint64_t offset = 0;
  for (; prefix != NULL && count < wanted; ++count) {
    char *text = NULL;
    const int size = asprintf(&text, "%s%" PRIu64, prefix, count);
    values[count] = (leat_bytes){text, (uint64_t)size};
  }
  const char *text = NULL;
  for (int at = 1; (text = next_option(command, "value", &at)) != NULL; ++at) {
    const struct bytes value = decode(text, strlen(text));
    values[count++] = (leat_bytes){value.data, value.size};
  }
  const int32_t code = leat_publisher_publish_batch(
      get(command, 1, kPublisher)->is.publisher, values, count,
      (uint32_t)number(command, "partition", LEAT_ANY_PARTITION), timeout_ns(command, 0), &offset,
      NULL);
  while (count != 0) free((void *)values[--count].data);
  free(values);
  return offset_result(command, code, offset);
}

static int32_t claim(struct command *command) {
  struct handle *handle = get(command, 1, kPublisher);
  leat_claim claim = {0};
  const int32_t code = leat_publisher_claim(handle->is.publisher, number(command, "size", 0),
                                            timeout_ns(command, 0), &claim, NULL);
  if (code == LEAT_OK) handle->claim = claim;
  return offset_result(command, code, claim.offset);
}
static int32_t commit(struct command *command) {
  struct handle *handle = get(command, 1, kPublisher);
  const struct bytes value = value_of(command);
  if (handle->claim.data != NULL && value.size <= handle->claim.size)
    memcpy(handle->claim.data, value.data, value.size);
  free(value.data);
  return leat_publisher_commit(handle->is.publisher, &handle->claim, value.size, NULL);
}
static int32_t abort_claim(struct command *command) {
  struct handle *handle = get(command, 1, kPublisher);
  return leat_publisher_abort(handle->is.publisher, &handle->claim, NULL);
}
static int32_t flush(struct command *command) {
  return leat_publisher_flush(get(command, 1, kPublisher)->is.publisher, timeout_ns(command, 10000),
                              NULL);
}
static int32_t durable_offset(struct command *command) {
  uint64_t offset = 0;
  const int32_t code = leat_publisher_durable_offset(get(command, 1, kPublisher)->is.publisher,
                                                     LEAT_ANY_PARTITION, &offset);
  return offset_result(command, code, offset);
}

// ---- Subscribers --------------------------------------------------------------------------------

static uint32_t from_of(const char *text, uint64_t *value) {
  const char *colon = text == NULL ? NULL : strchr(text, ':');
  if (text == NULL || strcmp(text, "end") == 0) return LEAT_FROM_END;
  if (strcmp(text, "beginning") == 0) return LEAT_FROM_BEGINNING;
  if (colon == NULL) fail("no such place", text);
  *value = strtoull(colon + 1, NULL, 10);
  if (strncmp(text, "offset", 6) == 0) return LEAT_FROM_OFFSET;
  return strncmp(text, "last", 4) == 0 ? LEAT_FROM_LAST : LEAT_FROM_TIME;
}

static int32_t subscriber(struct command *command) {
  leat_subscriber_options options = LEAT_SUBSCRIBER_OPTIONS_INIT;
  leat_topic *topic = get(command, 2, kTopic)->is.topic;
  struct handle *handle = make(command, kSubscriber);
  options.from = from_of(option(command, "from"), &options.from_value);
  options.in_place = (uint32_t)number(command, "in_place", 0);
  options.gating = number(command, "lossy", options.in_place) == 0;
  options.partition = (uint32_t)number(command, "partition", LEAT_ANY_PARTITION);
  options.any_thread = number(command, "own_thread", 0) == 0;  // `start` uses it in another.
  return made(handle, leat_topic_subscriber(topic, &options, &handle->is.subscriber, NULL));
}

static void print_record(FILE *out, const leat_record *record, const char *tail) {
  if (leat_record_is_gap(record)) {
    fprintf(out, "gap partition=%u offset=%" PRIu64 " count=%" PRIu64 " reason=%s\n",
            record->partition, record->offset, leat_gap_count(record),
            leat_gap_reason_name(leat_gap_reason(record)));
    return;
  }
  fprintf(out, "record partition=%u offset=%" PRIu64 " value=", record->partition, record->offset);
  print_bytes(out, record->value, record->value_size);
  if (leat_record_key(record) != NULL) {
    fputs(" key=", out);
    print_bytes(out, leat_record_key(record), record->key_size);
  }
  leat_headers headers = leat_record_headers(record);
  leat_header header;
  while (leat_next_header(&headers, &header)) {
    fputs(" header=", out);
    print_bytes(out, header.name, header.name_size);
    fputc(':', out);
    print_bytes(out, header.value, header.value_size);
  }
  const int64_t published_ms = leat_record_timestamp_ms(record);
  if (published_ms >= 0) fprintf(out, " timestamp=%" PRId64, published_ms);
  fprintf(out, "%s\n", tail);
}

static int32_t poll(struct command *command) {
  leat_record records[kBatch];
  uint32_t count = 0;
  uint64_t limit = number(command, "limit", kBatch);
  const int32_t code = leat_subscriber_poll(get(command, 1, kSubscriber)->is.subscriber, records,
                                            (uint32_t)(limit < kBatch ? limit : kBatch), &count, NULL);
  for (uint32_t i = 0; i < count; ++i) print_record(command->out, &records[i], "");
  return code;
}
static int32_t take(struct command *command) {
  leat_subscriber *from = get(command, 1, kSubscriber)->is.subscriber;
  leat_record records[kBatch];
  for (uint64_t left = number(command, "count", 1); left != 0;) {
    uint32_t count = 0;
    const int32_t code =
        leat_subscriber_receive(from, records, left < kBatch ? (uint32_t)left : kBatch, &count,
                                timeout_ns(command, 10000), NULL);
    if (code != LEAT_OK) return code;
    for (uint32_t i = 0; i < count; ++i) {
      print_record(command->out, &records[i], "");
      if (!leat_record_is_gap(&records[i])) --left;
    }
  }
  return LEAT_OK;
}
static int32_t wait_for(struct command *command) {
  struct handle *handle = find(word(command, 1));
  if (handle != NULL && handle->kind == kMember)
    return leat_member_wait(handle->is.member, timeout_ns(command, 0));
  return leat_subscriber_wait(get(command, 1, kSubscriber)->is.subscriber, timeout_ns(command, 0));
}
static int32_t wait_any(struct command *command) {
  leat_subscriber *all[kMaxHandles];
  uint32_t count = 0;
  uint32_t index = 0;
  for (int i = 1; i < command->count && strchr(command->words[i], '=') == NULL; ++i)
    all[count++] = get(command, i, kSubscriber)->is.subscriber;
  const int32_t code = leat_subscriber_wait_any(all, count, timeout_ns(command, 0), &index);
  snprintf(command->results, sizeof(command->results), " index=%u", index);
  return code;
}
static int32_t offset(struct command *command) {
  uint64_t offset = 0;
  const int32_t code = leat_subscriber_offset(get(command, 1, kSubscriber)->is.subscriber,
                                              (uint32_t)number(command, "partition", 0), &offset);
  return offset_result(command, code, offset);
}

// ---- Groups -------------------------------------------------------------------------------------

static int32_t group(struct command *command) {
  static const char *const modes[] = {"at_least_once", "at_most_once", NULL};
  leat_group_options options = LEAT_GROUP_OPTIONS_INIT;
  leat_topic *topic = get(command, 2, kTopic)->is.topic;
  struct handle *handle = make(command, kGroup);
  uint32_t created = 0;
  const char *mode = option(command, "mode");
  if (mode != NULL) options.mode = choice(mode, modes);
  options.from = from_of(option(command, "from"), &options.from_value);
  options.by_key = (uint32_t)number(command, "by_key", 0);
  options.lease_ns = (int64_t)number(command, "lease", 0) * 1000000;
  options.max_deliveries = (uint32_t)number(command, "max_deliveries", 0);
  options.in_flight = (uint32_t)number(command, "in_flight", options.in_flight);
  const int32_t code = leat_topic_group(topic, word(command, 3), LEAT_TEXT, &options,
                                        &handle->is.group, &created, NULL);
  snprintf(command->results, sizeof(command->results), " created=%u", created);
  return made(handle, code);
}
static int32_t find_group(struct command *command) {
  leat_topic *topic = get(command, 2, kTopic)->is.topic;
  struct handle *handle = make(command, kGroup);
  return made(handle, leat_topic_find_group(topic, word(command, 3), LEAT_TEXT, &handle->is.group, NULL));
}
static int32_t delete_group(struct command *command) {
  return leat_topic_delete_group(get(command, 1, kTopic)->is.topic, word(command, 2), LEAT_TEXT,
                                 (uint32_t)number(command, "force", 0), NULL);
}
static int32_t group_info(struct command *command) {
  leat_group_info info = {0};
  info.size = sizeof(info);
  const int32_t code =
      leat_group_get_info(get(command, 1, kGroup)->is.group, &info, NULL, 0, NULL, 0, NULL);
  snprintf(command->results, sizeof(command->results), " returned=%" PRIu64 " taking=%s",
           info.returned, leat_error_name(info.taking));
  return code;
}
static int32_t seek(struct command *command) {
  uint64_t value = 0;
  const uint32_t to = from_of(option(command, "to"), &value);
  return leat_group_seek(get(command, 1, kGroup)->is.group, to, value,
                         (uint32_t)number(command, "partition", LEAT_ANY_PARTITION), NULL);
}
static int32_t position(struct command *command) {
  uint64_t offset = 0;
  const int32_t code = leat_group_position(get(command, 1, kGroup)->is.group,
                                           (uint32_t)number(command, "partition", 0), &offset);
  return offset_result(command, code, offset);
}

static int32_t join(struct command *command) {
  leat_member_options options = LEAT_MEMBER_OPTIONS_INIT;
  leat_group *group = get(command, 2, kGroup)->is.group;
  struct handle *handle = make(command, kMember);
  const char *name = option(command, "name");
  if (name != NULL) options.name = (leat_bytes){name, strlen(name)};
  options.any_thread = 1;
  handle->deliveries = calloc(kMaxDeliveries, sizeof(leat_delivery));
  return made(handle, leat_group_join(group, &options, &handle->is.member, NULL));
}
static int32_t receive(struct command *command) {
  struct handle *handle = get(command, 1, kMember);
  leat_delivery *into = handle->deliveries + handle->delivery_count;
  const uint32_t room = kMaxDeliveries - handle->delivery_count;
  const uint64_t limit = number(command, "limit", 1);
  uint32_t count = 0;
  const int32_t code =
      leat_member_receive(handle->is.member, into, limit < room ? (uint32_t)limit : room, &count,
                          timeout_ns(command, 0), NULL);
  for (uint32_t i = 0; i < count; ++i) {
    char tail[64];
    snprintf(tail, sizeof(tail), " delivery=%u deliveries=%u", handle->delivery_count++,
             into[i].deliveries);
    print_record(command->out, &into[i].record, tail);
  }
  return code;
}

static const leat_delivery *delivery(const struct command *command, struct handle *handle, int index) {
  const unsigned long number = strtoul(word(command, index), NULL, 10);
  if (number >= handle->delivery_count) fail("no such delivery", word(command, index));
  return &handle->deliveries[number];
}
static int32_t count_result(struct command *command, int32_t code, uint64_t count) {
  snprintf(command->results, sizeof(command->results), " count=%" PRIu64, count);
  return code;
}
static int32_t acknowledge(struct command *command) {
  struct handle *handle = get(command, 1, kMember);
  leat_delivery some[kBatch];
  uint64_t acknowledged = 0;
  const int count = command->count - 2;
  if (count == 1) {
    const int32_t code = leat_member_acknowledge(handle->is.member, delivery(command, handle, 2));
    return count_result(command, code, 1);
  }
  for (int i = 0; i < count && i < kBatch; ++i) some[i] = *delivery(command, handle, i + 2);
  const int32_t code =
      leat_member_acknowledge_some(handle->is.member, some, (uint64_t)count, &acknowledged);
  return count_result(command, code, acknowledged);
}
static int32_t acknowledge_up_to(struct command *command) {
  struct handle *handle = get(command, 1, kMember);
  uint64_t count = 0;
  const int32_t code = leat_member_acknowledge_up_to(handle->is.member, delivery(command, handle, 2), &count);
  return count_result(command, code, count);
}
static int32_t acknowledge_all(struct command *command) {
  uint64_t count = 0;
  const int32_t code = leat_member_acknowledge_all(get(command, 1, kMember)->is.member, &count);
  return count_result(command, code, count);
}
static int32_t requeue(struct command *command) {
  struct handle *handle = get(command, 1, kMember);
  return leat_member_requeue(handle->is.member, delivery(command, handle, 2),
                             (int64_t)number(command, "delay", 0) * 1000000);
}
static int32_t in_flight(struct command *command) {
  uint64_t count = 0;
  const int32_t code = leat_member_in_flight(get(command, 1, kMember)->is.member, &count);
  return count_result(command, code, count);
}

// ---- All kinds of handles, and the loop -----------------------------------------------------------

static int32_t stop(struct command *command) {
  struct handle *handle = find(word(command, 1));
  if (handle != NULL && handle->kind == kPublisher) return leat_publisher_stop(handle->is.publisher);
  if (handle != NULL && handle->kind == kMember) return leat_member_stop(handle->is.member);
  return leat_subscriber_stop(get(command, 1, kSubscriber)->is.subscriber);
}
static int32_t resume(struct command *command) {
  struct handle *handle = find(word(command, 1));
  if (handle != NULL && handle->kind == kPublisher) return leat_publisher_resume(handle->is.publisher);
  if (handle != NULL && handle->kind == kMember) return leat_member_resume(handle->is.member);
  return leat_subscriber_resume(get(command, 1, kSubscriber)->is.subscriber);
}
static int32_t close_handle(struct command *command) {
  struct handle *handle = find(word(command, 1));
  if (handle == NULL) fail("no such handle", word(command, 1));
  const enum kind kind = handle->kind;
  handle->kind = kNone;
  free(handle->deliveries);
  handle->deliveries = NULL;
  switch (kind) {
    case kTopic: return leat_topic_close(&handle->is.topic);
    case kPublisher: return leat_publisher_close(&handle->is.publisher);
    case kSubscriber: return leat_subscriber_close(&handle->is.subscriber);
    case kGroup: return leat_group_close(&handle->is.group);
    case kMember: return leat_member_close(&handle->is.member);
    case kNone: break;
  }
  return LEAT_ERR_INVALID_ARGUMENT;
}
static int32_t error_names(struct command *command) {
  for (int32_t code = 0; strcmp(leat_error_name(code), "unknown") != 0; ++code)
    fprintf(command->out, "%d %s\n", code, leat_error_name(code));
  return LEAT_OK;
}

static const struct {
  const char *name;
  int32_t (*run)(struct command *command);
} commands[] = {
    {"create", create}, {"open", open_topic}, {"delete", delete_topic}, {"info", info},
    {"publisher", publisher}, {"publish", publish}, {"batch", batch}, {"claim", claim},
    {"commit", commit}, {"abort", abort_claim}, {"flush", flush},
    {"durable_offset", durable_offset}, {"subscriber", subscriber}, {"poll", poll}, {"take", take},
    {"view", take},  // C reads in place.
    {"wait", wait_for}, {"wait_any", wait_any}, {"offset", offset}, {"group", group},
    {"find_group", find_group}, {"delete_group", delete_group},
    {"group_info", group_info}, {"seek", seek},
    {"position", position}, {"join", join}, {"receive", receive}, {"acknowledge", acknowledge},
    {"acknowledge_up_to", acknowledge_up_to}, {"acknowledge_all", acknowledge_all},
    {"requeue", requeue}, {"in_flight", in_flight}, {"stop", stop}, {"resume", resume},
    {"close", close_handle}, {"error_names", error_names},
};

// Answers one command, in `line`, on `out`.
static void answer(char *line, FILE *out) {
  struct command *command = calloc(1, sizeof(*command));
  char *rest = NULL;
  command->out = out;
  for (char *at = strtok_r(line, " \n", &rest); at != NULL; at = strtok_r(NULL, " \n", &rest))
    if (command->count < kMaxWords) command->words[command->count++] = at;
  if (command->count == 0) fail("an empty line", "");
  if (option(command, "value") != NULL &&
      (option(command, "count") != NULL || option(command, "prefix") != NULL)) {
    fputs("error bad_command\n", out);
    free(command);
    return;
  }
  if (strcmp(command->words[0], "abandon") == 0) {
    fputs("not_applicable a claim in C has no scope\n", out);
    free(command);
    return;
  }
  for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); ++i) {
    if (strcmp(commands[i].name, command->words[0]) != 0) continue;
    const int32_t code = commands[i].run(command);
    if (code == LEAT_OK) {
      fprintf(out, "ok%s\n", command->results);
    } else {
      fprintf(out, "error %s\n", leat_error_name(code));
    }
    free(command);
    return;
  }
  fputs("error unknown_command\n", out);
  free(command);
}

struct started {
  pthread_t thread;
  char *line;
  char *text;
  size_t size;
};
static void *run_started(void *context) {
  struct started *started = context;
  FILE *out = open_memstream(&started->text, &started->size);
  answer(started->line, out);
  fclose(out);
  return NULL;
}

static void run_in_child(char *line) {
  const pid_t child = fork();
  if (child == 0) {
    answer(line, stdout);
    fflush(stdout);
    _exit(0);
  }
  waitpid(child, NULL, 0);
}

int main(void) {
  struct started started = {0};
  char *line = NULL;
  size_t capacity = 0;
  if (leat_abi_check(LEAT_ABI_VERSION) != LEAT_OK) fail("the library is too old", leat_version());
  while (getline(&line, &capacity, stdin) > 0) {
    if (strcmp(line, "quit\n") == 0) break;
    if (strncmp(line, "start ", 6) == 0) {
      started.line = strdup(line + 6);
      if (pthread_create(&started.thread, NULL, run_started, &started) != 0) fail("no thread", line);
      puts("ok");
    } else if (strcmp(line, "finish\n") == 0) {
      pthread_join(started.thread, NULL);
      fputs(started.text, stdout);
      free(started.text);
      free(started.line);
    } else if (strncmp(line, "fork ", 5) == 0) {
      run_in_child(line + 5);
    } else {
      answer(line, stdout);
    }
    fflush(stdout);
  }
  free(line);
  return 0;
}
