// Sentences of errors that name what failed: the topic or group, the directory, the option and what it can be. For the
// clients that are extensions in C: Lua, Python, Ruby.
#ifndef LEAT_CLIENTS_EXPLAIN_H
#define LEAT_CLIENTS_EXPLAIN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "leat.h"

enum { EXPLANATION_SIZE = 1024, LONGEST_SHOWN = 200 };

// What a call was about. Zeros: nothing.
typedef struct Subject {
  const char *act;  // "create topic"
  leat_bytes name;
  int is_topic;         // What has that name.
  int makes_directory;  // If there is none.
  leat_bytes directory;
  leat_bytes data_directory;
  const leat_topic_options *topic;
  const leat_subscriber_options *subscriber;
  int is_group;  // What has that name.
  const leat_group_options *group;
  int is_empty;  // A batch.
  const uint32_t *partition;
} Subject;

// A text of a program in quotation marks. What does not print becomes a question mark.
static inline void show_text(leat_bytes text, char shown[LONGEST_SHOWN + 8]) {
  const char *bytes = text.data;
  const size_t size = text.size < LONGEST_SHOWN ? (size_t)text.size : LONGEST_SHOWN;
  size_t at = 0;
  shown[at++] = '\'';
  for (size_t i = 0; i < size; ++i) {
    const unsigned char byte = (unsigned char)bytes[i];
    shown[at++] = byte < 32 || byte > 126 ? '?' : (char)byte;
  }
  strcpy(shown + at, size < text.size ? "...'" : "'");
}

static inline int is_topic_name(leat_bytes name) {
  static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  const char *bytes = name.data;
  if (name.size == 0 || name.size > 200 || (name.size <= 2 && strncmp(bytes, "..", name.size) == 0)) return 0;
  for (uint64_t i = 0; i < name.size; ++i) {
    if (bytes[i] == '\0' || strchr(allowed, bytes[i]) == NULL) return 0;
  }
  return 1;
}

static inline int is_address(leat_bytes name) {
  const char *bytes = name.data;
  for (uint64_t i = 0; i + 3 <= name.size; ++i) {
    if (memcmp(bytes + i, "://", 3) == 0) return 1;
  }
  return 0;
}

// ---- Directories --------------------------------------------------------------------------------

typedef struct Directory {
  char path[LONGEST_SHOWN + 1];
  const char *source;
} Directory;

// One that was given, or that of a variable, or else the default. 0 if its name is too long to be shown.
static inline int find_directory(leat_bytes given, const char *variable, const char *otherwise, Directory *found) {
  const char *value = getenv(variable);
  if (given.data != NULL && given.size != 0) {
    found->source = "an option";
    return snprintf(found->path, sizeof found->path, "%.*s", (int)given.size, (const char *)given.data) < LONGEST_SHOWN;
  }
  found->source = value != NULL && value[0] != '\0' ? variable : "the default";
  return snprintf(found->path, sizeof found->path, "%s", value != NULL && value[0] != '\0' ? value : otherwise) <
         LONGEST_SHOWN;
}

static inline int find_topics(const Subject *subject, Directory *found) {
  char otherwise[64];
  snprintf(otherwise, sizeof otherwise, "/dev/shm/leat-%u", (unsigned)geteuid());
  return find_directory(subject->directory, "LEAT_DIR", otherwise, found);
}

static inline int is_directory(const char *path) {
  struct stat about;
  return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static inline int explain_missing(const Subject *subject, char *reason, size_t size) {
  Directory found;
  if (!find_topics(subject, &found)) return 0;
  if (is_directory(found.path) && !subject->makes_directory) {
    snprintf(reason, size, "no such topic in %s (%s)", found.path, found.source);
    return 1;
  }
  if (is_directory(found.path) && !find_directory(subject->data_directory, "LEAT_DATA_DIR", "", &found)) return 0;
  if (found.path[0] == '\0' || is_directory(found.path)) return 0;
  snprintf(reason, size, "%s %s (%s)", subject->makes_directory ? "cannot make the directory" : "no directory", found.path,
           found.source);
  return 1;
}

static inline int explain_permission(const Subject *subject, char *reason, size_t size) {
  Directory found;
  if (!find_topics(subject, &found)) return 0;
  snprintf(reason, size, "permission denied in %s (%s)", found.path, found.source);
  return 1;
}

// ---- Options ------------------------------------------------------------------------------------

static inline int explain_topic(const leat_topic_options *options, char *reason, size_t size) {
  const uint64_t most_capacity = (uint64_t)1 << 40;
  const uint64_t most_segment = (uint64_t)1 << 30;
  const int64_t millisecond = 1000000;
  const int grows = options->policy == LEAT_POLICY_GROW;
  if (options->partitions == 0 || options->partitions > 1024)
    snprintf(reason, size, "partitions must be 1 to 1024, not %u", options->partitions);
  else if (options->participants == 0 || options->participants > 4096)
    snprintf(reason, size, "participants must be 1 to 4096, not %u", options->participants);
  else if (options->capacity_bytes > most_capacity)
    snprintf(reason, size, "capacity_bytes must be at most %llu (1 TiB)", (unsigned long long)most_capacity);
  else if (options->segment_bytes > most_segment)
    snprintf(reason, size, "segment_bytes must be at most %llu (1 GiB)", (unsigned long long)most_segment);
  else if ((options->mode & ~0666U) != 0 || (options->mode & 0600U) != 0600U)
    snprintf(reason, size, "mode must be between 0600 and 0666 (octal), not %#o", options->mode);
  else if (!grows && (options->max_capacity_bytes != 0 || options->grow_below_bytes != 0))
    snprintf(reason, size, "max_capacity_bytes and grow_below_bytes need policy grow");
  else if (options->retain_all != 0 && (grows || options->policy == LEAT_POLICY_OVERWRITE || options->evict_after_ns != 0))
    snprintf(reason, size, "retain_all excludes policies overwrite and grow, and evict_after");
  else if (options->durable == LEAT_DURABILITY_NONE &&
           (options->retention_bytes != 0 || options->retention_ms != 0 || options->sync_interval_ns != 0))
    snprintf(reason, size, "retention, retention_bytes and sync_interval need a durable topic");
  else if (options->durable == LEAT_DURABILITY_INTERVAL &&
           (options->sync_interval_ns < millisecond || options->sync_interval_ns > 3600 * 1000 * millisecond))
    snprintf(reason, size, "sync_interval must be 0.001 to 3600 seconds, not %g", (double)options->sync_interval_ns / 1e9);
  else if (options->durable != LEAT_DURABILITY_INTERVAL && options->sync_interval_ns != 0)
    snprintf(reason, size, "sync_interval needs durable interval");
  else if (options->file_group.size != 0)
    snprintf(reason, size, "file_group is not a group of this machine, or an option is out of its range");
  else
    return 0;
  return 1;
}

static inline int explain_group(const leat_group_options *options, char *reason, size_t size) {
  if (options->members == 0 || options->members > 255)
    snprintf(reason, size, "members must be 1 to 255, not %u", options->members);
  else if (options->in_flight == 0 || options->in_flight > 65536)
    snprintf(reason, size, "in_flight must be 1 to 65536, not %u", options->in_flight);
  else if (options->max_deliveries > 65534)
    snprintf(reason, size, "max_deliveries must be at most 65534, not %u", options->max_deliveries);
  else
    return 0;
  return 1;
}

static inline int explain_argument(const Subject *subject, char *reason, size_t size) {
  if ((subject->is_topic || subject->is_group) && !is_topic_name(subject->name)) {
    snprintf(reason, size, "a name is 1 to 200 of the characters A-Z a-z 0-9 . _ -");
    return 1;
  }
  if (subject->topic != NULL) return explain_topic(subject->topic, reason, size);
  if (subject->group != NULL) return explain_group(subject->group, reason, size);
  if (subject->is_empty) {
    snprintf(reason, size, "a batch has at least one value");
    return 1;
  }
  if (subject->subscriber != NULL && subject->subscriber->gating != 0 && subject->subscriber->in_place != 0) {
    snprintf(reason, size, "in_place needs gating to be false");
    return 1;
  }
  if (subject->partition != NULL && *subject->partition != LEAT_ANY_PARTITION) {
    snprintf(reason, size, "the topic has no partition %u", *subject->partition);
    return 1;
  }
  if (subject->subscriber != NULL && subject->subscriber->from == LEAT_FROM_OFFSET) {
    snprintf(reason, size, "to begin at an offset, name a partition: the topic has several");
    return 1;
  }
  return 0;
}

// ---- All ----------------------------------------------------------------------------------------

// Writes the sentence for a code that a call returned, in UTF-8 unless a path is not.
static inline void explain(const Subject *subject, int32_t code, int32_t detail, char sentence[EXPLANATION_SIZE]) {
  char reason[2 * LEAT_DESCRIPTION_SIZE] = "";
  char name[LONGEST_SHOWN + 8] = "";
  int is_explained = 0;
  if (code == LEAT_ERR_INVALID_ARGUMENT) is_explained = explain_argument(subject, reason, sizeof reason);
  if (code == LEAT_ERR_NOT_FOUND && subject->is_topic) is_explained = explain_missing(subject, reason, sizeof reason);
  if (code == LEAT_ERR_NOT_FOUND && subject->is_group) {
    is_explained = 1;
    snprintf(reason, sizeof reason, "the topic has no group of this name");
  }
  if (code == LEAT_ERR_PERMISSION && subject->is_topic) is_explained = explain_permission(subject, reason, sizeof reason);
  if (code == LEAT_ERR_UNSUPPORTED && subject->is_topic && is_address(subject->name)) {
    is_explained = 1;
    snprintf(reason, sizeof reason, "this is the address of a broker, and only topics of this machine can be opened");
  }
  if (!is_explained) (void)leat_describe(code, detail, reason, sizeof reason);
  if (subject->name.data != NULL) show_text(subject->name, name);
  snprintf(sentence, EXPLANATION_SIZE, "cannot %s%s%s: %s", subject->act, name[0] == '\0' ? "" : " ", name, reason);
}

#endif
