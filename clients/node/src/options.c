// Objects of JavaScript into the library's structs of options.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "addon.h"

static int refuse(napi_env env, const char *name, const char *wanted) {
  char sentence[200] = "";
  snprintf(sentence, sizeof sentence, "%s must be %s", name, wanted);
  (void)napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", sentence);
  return 0;
}

// A number from 0 to `most`. Without a fraction, if `is_whole`.
static int parse_number(napi_env env, const char *name, napi_value given, double most, int is_whole,
                        double *into) {
  if (napi_get_value_double(env, given, into) != napi_ok || !(*into >= 0) || !(*into <= most) ||
      (is_whole && *into != floor(*into)))
    return refuse(
        env, name,
        is_whole ? "a whole number that is not negative" : "a number that is not negative");
  return 1;
}

static int parse_choice(napi_env env, const Option *option, napi_value given, uint32_t *into) {
  char text[32] = "";
  char all[120] = "one of";
  size_t size = 0;
  if (napi_get_value_string_utf8(env, given, text, sizeof text, &size) == napi_ok) {
    for (uint32_t i = 0; option->choices[i] != NULL; ++i) {
      if (option->choices[i][0] == '\0' || strcmp(option->choices[i], text) != 0) continue;
      *into = i;
      return 1;
    }
  }
  for (uint32_t i = 0; option->choices[i] != NULL; ++i) {
    if (option->choices[i][0] == '\0') continue;  // Stands for the default, which has no name.
    size = strlen(all);
    snprintf(all + size, sizeof all - size, " '%s'", option->choices[i]);
  }
  return refuse(env, option->name, all);
}

static const double kMost = 9007199254740991.0;  // 2^53 - 1

int parse_from(napi_env env, napi_value value, uint32_t *from, uint64_t *into) {
  static const char *const names[] = {"end", "beginning", NULL};
  static const struct {
    const char *name;
    uint32_t from;
  } kinds[] = {{"offset", LEAT_FROM_OFFSET}, {"last", LEAT_FROM_LAST}, {"time", LEAT_FROM_TIME}};
  const Option option = {"from", OPTION_CHOICE, 0, 0, names};
  napi_valuetype type = napi_undefined;
  *into = 0;
  (void)napi_typeof(env, value, &type);
  if (type == napi_string) return parse_choice(env, &option, value, from);
  for (size_t i = 0; type == napi_object && i < sizeof kinds / sizeof *kinds; ++i) {
    napi_value given = NULL;
    double amount = 0;
    bool is_date = false;
    if (napi_get_named_property(env, value, kinds[i].name, &given) != napi_ok) return 0;
    if (is_nothing(env, given)) continue;
    if (napi_is_date(env, given, &is_date) == napi_ok && is_date)
      (void)napi_get_date_value(env, given, &amount);
    else if (!parse_number(env, kinds[i].name, given, kMost, 1, &amount))
      return 0;
    if (!(amount >= 0)) return refuse(env, kinds[i].name, "a time since 1970");
    *from = kinds[i].from;
    *into = (uint64_t)amount;
    return 1;
  }
  return refuse(env, "from", "'end', 'beginning', { offset }, { last } or { time }");
}

static int parse_option(napi_env env, const Option *option, napi_value given, void *into) {
  void *at = (char *)into + option->at;
  double amount = 0;
  bool flag = false;
  leat_bytes *bytes = at;
  switch (option->kind) {
    case OPTION_FLAG:
      if (napi_get_value_bool(env, given, &flag) != napi_ok)
        return refuse(env, option->name, "true or false");
      *(uint32_t *)at = flag;
      return 1;
    case OPTION_U32:
      // The largest one stands for no partition in particular.
      if (!parse_number(env, option->name, given, UINT32_MAX - 1, 1, &amount)) return 0;
      *(uint32_t *)at = (uint32_t)amount;
      return 1;
    case OPTION_U64:
      if (!parse_number(env, option->name, given, kMost, 1, &amount)) return 0;
      *(uint64_t *)at = (uint64_t)amount;
      return 1;
    case OPTION_MS_AS_NS:
      if (!parse_number(env, option->name, given, 9e12, 0, &amount)) return 0;
      *(int64_t *)at = (int64_t)(amount * 1e6);
      return 1;
    case OPTION_MS:
      if (!parse_number(env, option->name, given, kMost, 0, &amount)) return 0;
      *(int64_t *)at = (int64_t)amount;
      return 1;
    case OPTION_TEXT:
      bytes->data = text_of(env, given, &bytes->size);
      return bytes->data != NULL ? 1 : refuse(env, option->name, "a string");
    case OPTION_CHOICE: return parse_choice(env, option, given, at);
    case OPTION_FROM:
      return parse_from(env, given, at, (uint64_t *)((char *)into + option->second));
  }
  return 0;
}

// Options that nobody knows are most often misspelt.
static int are_known(napi_env env, napi_value object, const Option *table) {
  napi_value names = NULL;
  uint32_t count = 0;
  if (napi_get_property_names(env, object, &names) != napi_ok ||
      napi_get_array_length(env, names, &count) != napi_ok)
    return 0;
  for (uint32_t i = 0; i < count; ++i) {
    const Option *option = table;
    napi_value name = NULL;
    char text[64] = "";
    char sentence[120] = "";
    if (napi_get_element(env, names, i, &name) != napi_ok) return 0;
    (void)napi_get_value_string_utf8(env, name, text, sizeof text, NULL);
    while (option->name != NULL && strcmp(option->name, text) != 0) ++option;
    if (option->name != NULL) continue;
    snprintf(sentence, sizeof sentence, "there is no option '%s'", text);
    (void)napi_throw_type_error(env, "ERR_INVALID_ARG_VALUE", sentence);
    return 0;
  }
  return 1;
}

int parse_options(napi_env env, napi_value object, const Option *table, void *into) {
  napi_valuetype type = napi_undefined;
  if (is_nothing(env, object)) return 1;
  (void)napi_typeof(env, object, &type);
  if (type != napi_object) return refuse(env, "options", "an object");
  if (!are_known(env, object, table)) return 0;
  for (const Option *option = table; option->name != NULL; ++option) {
    napi_value given = NULL;
    if (napi_get_named_property(env, object, option->name, &given) != napi_ok) return 0;
    if (!is_nothing(env, given) && !parse_option(env, option, given, into)) return 0;
  }
  return 1;
}

void free_options(const Option *table, void *options) {
  for (; table->name != NULL; ++table) {
    leat_bytes *bytes = (void *)((char *)options + table->at);
    if (table->kind != OPTION_TEXT) continue;
    free((void *)bytes->data);
    bytes->data = NULL;
  }
}
