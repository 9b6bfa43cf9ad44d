/* Two copies of libleat in one process, as two extensions of an interpreter have them; both are global, so that each
 * could get the other's functions. test_packaging_capi.py runs it: two_copies LIBRARY LIBRARY. */
#include <dlfcn.h>
#include <leat/leat.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND ((int64_t)1000000000)

#define FUNCTIONS(X)                                                                                        \
  X(abi_check) X(topic_create) X(topic_open) X(topic_close) X(topic_publisher) X(topic_subscriber)          \
  X(topic_group) X(group_join) X(group_close) X(publisher_publish) X(publisher_close) X(subscriber_poll)    \
  X(subscriber_receive) X(subscriber_wait) X(subscriber_wait_fd) X(subscriber_stop) X(subscriber_close)     \
  X(member_receive) X(member_acknowledge) X(member_wait_fd) X(member_close) X(topic_partitions)             \
  X(group_position)

#define DECLARE(name) __typeof__(leat_##name) *name;
typedef struct {
  void *library;
  FUNCTIONS(DECLARE)
} copy_t;

/* What one copy has open. */
typedef struct {
  const copy_t *of;
  leat_topic *topic;
  leat_publisher *publisher;
  leat_subscriber *subscriber;
  leat_group *group;
  leat_member *member;
  int32_t subscriber_fd;
  int32_t member_fd;
} world_t;

static copy_t copies[2];

static void check_at(int line, int is_true) {
  if (is_true) return;
  fprintf(stderr, "two_copies.c:%d\n", line);
  _Exit(1); /* In the child, too. */
}
#define CHECK(is_true) check_at(__LINE__, is_true)
#define MUST(call) CHECK((call) == LEAT_OK)

static void load(copy_t *copy, const char *path) {
  copy->library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  CHECK(copy->library != NULL);
#define FIND(name)                                                \
  *(void **)&copy->name = dlsym(copy->library, "leat_" #name); \
  CHECK(copy->name != NULL);
  FUNCTIONS(FIND)
  MUST(copy->abi_check(LEAT_ABI_VERSION));
  CHECK(copy->abi_check(LEAT_ABI_VERSION + 1) == LEAT_ERR_UNSUPPORTED);
}

static world_t open_world(const copy_t *of) {
  world_t world = {of, NULL, NULL, NULL, NULL, NULL, -1, -1};
  MUST(of->topic_open("both", LEAT_TEXT, 0, NULL, &world.topic, NULL));
  MUST(of->topic_publisher(world.topic, NULL, &world.publisher, NULL));
  MUST(of->topic_subscriber(world.topic, NULL, &world.subscriber, NULL));
  MUST(of->topic_group(world.topic, "group", LEAT_TEXT, NULL, &world.group, NULL, NULL));
  MUST(of->group_join(world.group, NULL, &world.member, NULL));
  MUST(of->subscriber_wait_fd(world.subscriber, &world.subscriber_fd, NULL));
  MUST(of->member_wait_fd(world.member, &world.member_fd, NULL));
  return world;
}

static void close_world(world_t *world, int is_topic_first) {
  const copy_t *of = world->of;
  if (is_topic_first) MUST(of->topic_close(&world->topic));
  if (world->member != NULL) MUST(of->member_close(&world->member));
  MUST(of->subscriber_close(&world->subscriber));
  MUST(of->publisher_close(&world->publisher));
  MUST(of->group_close(&world->group));
  if (!is_topic_first) MUST(of->topic_close(&world->topic));
}

static void publish(world_t *world, const char *letter) {
  MUST(world->of->publisher_publish(world->publisher, letter, 1, 0, NULL, NULL));
}

/* The next record's letter; '-' if there is none. */
static char next(world_t *world) {
  leat_record record;
  uint32_t count = 0;
  const int32_t code = world->of->subscriber_receive(world->subscriber, &record, 1, &count, 0, NULL);
  if (code == LEAT_ERR_TIMEOUT) return '-';
  MUST(code);
  return (char)record.value[0];
}

static int is_readable(int32_t fd, int milliseconds) {
  struct pollfd one = {fd, POLLIN, 0};
  return poll(&one, 1, milliseconds) == 1;
}

/* One group has members of both: each record goes to one, and those of one that leaves go to the other. */
static void share(world_t *one, world_t *two) {
  world_t *const both[] = {one, two};
  int held[2] = {0, 0};
  int all = 0;
  int i = 0;
  leat_delivery deliveries[2];
  uint32_t count = 0;
  for (i = 0; i < 2; ++i) { /* One each: members claim no more than they are asked for, and leave the other some. */
    publish(both[i], "s");
    MUST(both[i]->of->member_receive(both[i]->member, &deliveries[i], 1, &count, 10 * SECOND, NULL));
    CHECK(count == 1);
  }
  CHECK(deliveries[0].record.offset != deliveries[1].record.offset);
  CHECK(one->of->member_acknowledge(one->member, &deliveries[1]) == LEAT_ERR_NOT_IN_FLIGHT);
  CHECK(two->of->member_acknowledge(two->member, &deliveries[0]) == LEAT_ERR_NOT_IN_FLIGHT);
  MUST(one->of->member_acknowledge(one->member, &deliveries[0]));
  MUST(two->of->member_close(&two->member)); /* With its record. */
  MUST(one->of->member_receive(one->member, &deliveries[0], 1, &count, 10 * SECOND, NULL));
  CHECK(deliveries[0].record.offset == deliveries[1].record.offset && deliveries[0].deliveries == 2);
  MUST(one->of->member_acknowledge(one->member, &deliveries[0]));
  MUST(two->of->group_join(two->group, NULL, &two->member, NULL));
  MUST(two->of->member_wait_fd(two->member, &two->member_fd, NULL));
  for (i = 0; i < 20; ++i) publish(both[i % 2], "s");
  for (i = 0; all < 20; i = 1 - i) {
    const int32_t code =
        both[i]->of->member_receive(both[i]->member, deliveries, 1, &count, SECOND / 50, NULL);
    if (code == LEAT_ERR_TIMEOUT) continue;
    MUST(code);
    MUST(both[i]->of->member_acknowledge(both[i]->member, deliveries));
    ++all;
    ++held[i];
  }
  CHECK(held[0] > 0 && held[1] > 0);
  for (i = 0; i < 2; ++i) {
    while (next(both[i]) != '-') {
    }
  }
}

/* Descriptors of both are armed at once: each hears of what the other publishes, and goes on when the other, armed as
 * it is, is closed. */
static void wait_for_descriptors(world_t *closes, world_t *stays) {
  world_t *const both[] = {closes, stays};
  leat_delivery delivery;
  uint32_t count = 0;
  int publisher = 0;
  int i = 0;
  for (publisher = 0; publisher < 2; ++publisher) {
    for (i = 0; i < 2; ++i) {
      CHECK(next(both[i]) == '-');
      CHECK(!is_readable(both[i]->subscriber_fd, 0));
    }
    publish(both[publisher], "d");
    for (i = 0; i < 2; ++i) {
      CHECK(is_readable(both[i]->subscriber_fd, 10000));
      CHECK(next(both[i]) == 'd' && next(both[i]) == '-');
    }
    MUST(stays->of->member_receive(stays->member, &delivery, 1, &count, 10 * SECOND, NULL));
    MUST(stays->of->member_acknowledge(stays->member, &delivery));
  }
  for (i = 0; i < 2; ++i)
    CHECK(both[i]->of->member_receive(both[i]->member, &delivery, 1, &count, 0, NULL) == LEAT_ERR_TIMEOUT);
  close_world(closes, 1);
  CHECK(!is_readable(stays->subscriber_fd, 0));
  publish(stays, "e");
  CHECK(is_readable(stays->subscriber_fd, 10000) && is_readable(stays->member_fd, 10000));
  CHECK(next(stays) == 'e' && next(stays) == '-');
  MUST(stays->of->member_receive(stays->member, &delivery, 1, &count, 10 * SECOND, NULL));
  MUST(stays->of->member_acknowledge(stays->member, &delivery));
}

static void *wait_until_stopped(void *of) {
  world_t *const world = of;
  leat_record record;
  uint32_t count = 0;
  int32_t code = LEAT_OK;
  while (code == LEAT_OK) /* The child publishes, too. */
    code = world->of->subscriber_receive(world->subscriber, &record, 1, &count, 60 * SECOND, NULL);
  CHECK(code == LEAT_ERR_STOPPED);
  return NULL;
}

static void expect_forked(world_t *world) {
  const copy_t *const of = world->of;
  leat_record record;
  leat_delivery delivery;
  leat_publisher *publisher = NULL;
  uint64_t offset = 0;
  uint32_t count = 0;
  CHECK(of->topic_partitions(world->topic, &count) == LEAT_ERR_FORKED);
  CHECK(of->topic_publisher(world->topic, NULL, &publisher, NULL) == LEAT_ERR_FORKED);
  CHECK(of->publisher_publish(world->publisher, "x", 1, 0, NULL, NULL) == LEAT_ERR_FORKED);
  CHECK(of->subscriber_poll(world->subscriber, &record, 1, &count, NULL) == LEAT_ERR_FORKED);
  CHECK(of->subscriber_wait(world->subscriber, 0) == LEAT_ERR_FORKED);
  CHECK(of->group_position(world->group, 0, &offset) == LEAT_ERR_FORKED);
  CHECK(of->member_receive(world->member, &delivery, 1, &count, 0, NULL) == LEAT_ERR_FORKED);
}

/* A child refuses handles of both, and both work in it; the parent's go on. */
static void fork_once(world_t *one, world_t *two, int first) {
  world_t *const both[] = {one, two};
  int status = -1;
  pid_t child = -1;
  pthread_t thread; /* Of it the child has none. */
  int i = 0;
  CHECK(pthread_create(&thread, NULL, wait_until_stopped, one) == 0);
  child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    world_t own[2];
    expect_forked(both[first]);
    close_world(both[first], 0);
    expect_forked(both[1 - first]);
    own[first] = open_world(&copies[first]);
    close_world(both[1 - first], 1);
    own[1 - first] = open_world(&copies[1 - first]);
    share(&own[0], &own[1]);
    wait_for_descriptors(&own[first], &own[1 - first]);
    close_world(&own[1 - first], 0);
    _exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  MUST(one->of->subscriber_stop(one->subscriber));
  CHECK(pthread_join(thread, NULL) == 0);
  MUST(one->of->subscriber_close(&one->subscriber)); /* A new one, which nobody stops. */
  MUST(one->of->topic_subscriber(one->topic, NULL, &one->subscriber, NULL));
  MUST(one->of->subscriber_wait_fd(one->subscriber, &one->subscriber_fd, NULL));
  for (i = 0; i < 2; ++i) {
    while (next(both[i]) != '-') {
    }
  }
}

int main(int count, char **names) {
  leat_topic *topic = NULL;
  int first = 0;
  CHECK(count == 3);
  load(&copies[0], names[1]);
  load(&copies[1], names[2]);
  CHECK(copies[0].library != copies[1].library);
  MUST(copies[0].topic_create("both", LEAT_TEXT, NULL, &topic, NULL));
  for (first = 0; first < 2; ++first) { /* Which is closed first. */
    world_t one = open_world(&copies[0]);
    world_t two = open_world(&copies[1]);
    share(&one, &two);
    fork_once(&one, &two, first);
    wait_for_descriptors(first == 0 ? &one : &two, first == 0 ? &two : &one);
    close_world(first == 0 ? &two : &one, 0);
  }
  dlclose(copies[0].library); /* Not unloaded: its threads and handlers go on. */
  MUST(copies[0].topic_close(&topic));
  return 0;
}
