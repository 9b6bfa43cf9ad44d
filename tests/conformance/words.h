// Words and bytes of the line protocol, for the driver of the C client.
#ifndef LEAT_TESTS_CONFORMANCE_WORDS_H
#define LEAT_TESTS_CONFORMANCE_WORDS_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leat/leat.h"

enum { kMaxWords = 1100 };

struct bytes {
  uint8_t *data;
  uint64_t size;
};

struct command {
  char *words[kMaxWords];
  int count;
  FILE *out;
  char results[96];  // Behind `ok`.
};

static void fail(const char *why, const char *word) {
  fprintf(stderr, "driver: %s: %s\n", why, word);
  exit(2);
}

static int hex(char digit) {
  const char *at = strchr("0123456789ABCDEF", digit);
  if (digit == 0 || at == NULL) fail("not a hexadecimal digit", &digit);
  return (int)(at - "0123456789ABCDEF");
}

// The caller frees data, which is never NULL.
static struct bytes decode(const char *text, uint64_t length) {
  struct bytes bytes = {malloc(length + 1), 0};
  for (uint64_t i = 0; i < length; ++i) {
    if (text[i] == '%') {
      bytes.data[bytes.size++] = (uint8_t)(hex(text[i + 1]) * 16 + hex(text[i + 2]));
      i += 2;
    } else {
      bytes.data[bytes.size++] = (uint8_t)text[i];
    }
  }
  return bytes;
}

static void print_bytes(FILE *out, const uint8_t *data, uint64_t size) {
  if (size > 64) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (uint64_t i = 0; i < size; ++i) hash = (hash ^ data[i]) * UINT64_C(0x100000001b3);
    fprintf(out, "%" PRIu64 "*%016" PRIx64, size, hash);
    return;
  }
  for (uint64_t i = 0; i < size; ++i) {
    const uint8_t byte = data[i];
    const int plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                      (byte >= '0' && byte <= '9') || (byte != 0 && strchr("-_.,/+", byte) != NULL);
    fprintf(out, plain ? "%c" : "%%%02X", byte);
  }
}

// What stands behind `name=`; NULL if the command has no such word. `at`: where to begin, and where it was.
static const char *next_option(const struct command *command, const char *name, int *at) {
  const size_t length = strlen(name);
  for (; *at < command->count; ++*at) {
    const char *word = command->words[*at];
    if (strncmp(word, name, length) == 0 && word[length] == '=') return word + length + 1;
  }
  return NULL;
}
static const char *option(const struct command *command, const char *name) {
  int at = 1;
  return next_option(command, name, &at);
}
static uint64_t number(const struct command *command, const char *name, uint64_t otherwise) {
  const char *text = option(command, name);
  return text == NULL ? otherwise : strtoull(text, NULL, 10);
}
static int64_t timeout_ns(const struct command *command, int64_t otherwise_ms) {
  const char *text = option(command, "timeout");
  if (text == NULL) return otherwise_ms * 1000000;
  return strcmp(text, "never") == 0 ? LEAT_FOREVER : strtoll(text, NULL, 10) * 1000000;
}
// The index of `text` in a list of words; ends the program if it is none of them.
static uint32_t choice(const char *text, const char *const *words) {
  for (uint32_t i = 0; words[i] != NULL; ++i)
    if (strcmp(text, words[i]) == 0) return i;
  fail("no such word", text);
  return 0;
}
static const char *word(const struct command *command, int index) {
  if (index >= command->count) fail("a word is missing behind", command->words[0]);
  return command->words[index];
}

// The value, by `value` or `fill`. The caller frees data.
static struct bytes value_of(const struct command *command) {
  const char *fill = option(command, "fill");
  if (fill != NULL) {
    struct bytes bytes = {NULL, strtoull(fill, NULL, 10)};
    const char *digits = strchr(fill, ':') + 1;
    bytes.data = malloc(bytes.size + 1);
    memset(bytes.data, hex(digits[0]) * 16 + hex(digits[1]), bytes.size);
    return bytes;
  }
  const char *value = option(command, "value");
  return decode(value == NULL ? "" : value, value == NULL ? 0 : strlen(value));
}

#endif
