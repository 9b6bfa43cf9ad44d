// Arguments into the library's types and structs of options, and texts out of it.
#include <math.h>
#include <string.h>

#include "leat_ruby.h"

int64_t parse_seconds(VALUE object, const char *what) {
  double seconds = 0;
  if (!rb_obj_is_kind_of(object, rb_cNumeric))
    rb_raise(rb_eTypeError, "%s must be a number of seconds, not %" PRIsVALUE, what, rb_obj_class(object));
  seconds = NUM2DBL(object);
  if (isnan(seconds) || seconds < 0) rb_raise(rb_eArgError, "%s must be seconds from 0 on, not %+" PRIsVALUE, what, object);
  // Beyond a hundred years it is for ever, and would overflow soon.
  return seconds > 3e9 ? (int64_t)3e18 : (int64_t)ceil(seconds * 1e9);
}

int64_t parse_timeout(VALUE seconds) {
  int64_t ns = LEAT_FOREVER;
  if (seconds == Qundef || NIL_P(seconds)) return LEAT_FOREVER;
  ns = parse_seconds(seconds, "timeout");
  return ns == (int64_t)3e18 ? LEAT_FOREVER : ns;
}

uint64_t parse_u64(VALUE number, const char *what) {
  if (!RB_INTEGER_TYPE_P(number))
    rb_raise(rb_eTypeError, "%s must be an Integer, not %" PRIsVALUE, what, rb_obj_class(number));
  if (FIXNUM_P(number) ? FIX2LONG(number) < 0 : !RBIGNUM_POSITIVE_P(number))
    rb_raise(rb_eArgError, "%s must not be negative: it is %" PRIsVALUE, what, number);
  return NUM2ULL(number);
}

uint32_t parse_partition(VALUE number) {
  uint64_t value = 0;
  if (number == Qundef || NIL_P(number)) return LEAT_ANY_PARTITION;
  value = parse_u64(number, "partition");
  // Beyond all partitions that a topic can have, so the library answers.
  return value < UINT32_MAX - 1 ? (uint32_t)value : UINT32_MAX - 1;
}

uint32_t parse_limit(VALUE number) {
  uint64_t value = DEFAULT_LIMIT;
  if (number != Qundef) value = parse_u64(number, "limit");
  if (value == 0) rb_raise(rb_eArgError, "limit must not be 0");
  return value < MAX_LIMIT ? (uint32_t)value : MAX_LIMIT;
}

leat_bytes parse_bytes(VALUE string, const char *what) {
  leat_bytes bytes = {NULL, 0};
  if (!RB_TYPE_P(string, T_STRING))
    rb_raise(rb_eTypeError, "%s must be a String, not %" PRIsVALUE, what, rb_obj_class(string));
  bytes.data = RSTRING_PTR(string);
  bytes.size = (uint64_t)RSTRING_LEN(string);
  return bytes;
}

// ---- Positional and named arguments ---------------------------------------------------------------

void parse_arguments(int argc, const VALUE *argv, int required, int optional,
                     const char *const *names, VALUE *out) {
  ID ids[8];
  VALUE named = Qnil;
  int count = 0;
  int i = 0;
  if (rb_keyword_given_p()) named = argv[--argc];
  rb_check_arity(argc, required, required + optional);
  for (; i < required + optional; ++i) out[i] = i < argc ? argv[i] : Qundef;
  for (; names[count] != NULL; ++count) {
    if (!NIL_P(named)) ids[count] = rb_intern(names[count]);  // Which costs as much as a call of the library.
    out[i + count] = Qundef;
  }
  if (!NIL_P(named)) rb_get_kwargs(named, ids, 0, count, out + i);
}

// ---- Options ------------------------------------------------------------------------------------

static VALUE word_of(VALUE object, const char *what) {
  if (SYMBOL_P(object)) return rb_sym2str(object);
  if (!RB_TYPE_P(object, T_STRING))
    rb_raise(rb_eTypeError, "%s must be a Symbol, not %" PRIsVALUE, what, rb_obj_class(object));
  return object;
}

static int is_word(VALUE word, const char *name) {
  return (size_t)RSTRING_LEN(word) == strlen(name) && memcmp(RSTRING_PTR(word), name, strlen(name)) == 0;
}

static uint32_t parse_choice(const Option *option, VALUE given) {
  const VALUE word = word_of(given, option->name);
  VALUE all = Qnil;
  uint32_t i = 0;
  for (; option->choices[i] != NULL; ++i) {
    // An empty name stands for the default, which has none.
    if (option->choices[i][0] != '\0' && is_word(word, option->choices[i])) return i;
  }
  all = rb_str_new_cstr("");
  for (i = 0; option->choices[i] != NULL; ++i) {
    if (option->choices[i][0] != '\0')
      rb_str_catf(all, "%s:%s", RSTRING_LEN(all) == 0 ? "" : ", ", option->choices[i]);
  }
  rb_raise(rb_eArgError, "%s must be one of %" PRIsVALUE ", not %+" PRIsVALUE, option->name, all, given);
}

static int take_pair(VALUE key, VALUE value, VALUE context) {
  ((VALUE *)context)[0] = key;
  ((VALUE *)context)[1] = value;
  return ST_STOP;
}

void parse_from(VALUE object, uint32_t *from, uint64_t *value) {
  static const char *const names[] = {"end", "beginning", NULL};
  const Option option = {"from", OPTION_CHOICE, 0, 0, names};
  VALUE pair[2] = {Qnil, Qnil};
  VALUE kind = Qnil;
  VALUE number = Qnil;
  *value = 0;
  if (!RB_TYPE_P(object, T_HASH)) {
    *from = parse_choice(&option, object);
    return;
  }
  if (RHASH_SIZE(object) != 1) rb_raise(rb_eArgError, "from must have one of offset:, last:, time:");
  rb_hash_foreach(object, take_pair, (VALUE)pair);
  kind = word_of(pair[0], "from");
  number = pair[1];
  if (is_word(kind, "offset")) {
    *from = LEAT_FROM_OFFSET;
  } else if (is_word(kind, "last")) {
    *from = LEAT_FROM_LAST;
  } else if (is_word(kind, "time")) {
    *from = LEAT_FROM_TIME;
    if (rb_obj_is_kind_of(number, rb_cTime)) {
      number = rb_funcall(number, rb_intern("to_r"), 0);
      number = rb_funcall(rb_funcall(number, '*', 1, INT2FIX(1000)), rb_intern("floor"), 0);
    }
  } else {
    rb_raise(rb_eArgError, "from must have one of offset:, last:, time:");
  }
  *value = parse_u64(number, "from");
}

static leat_bytes parse_text(VALUE object, Texts *texts) {
  const VALUE text = rb_str_new_frozen(rb_get_path(object));
  // A keyword can come twice: as a Symbol and as a String.
  if (texts->count == MAX_TEXTS) rb_raise(rb_eArgError, "too many keywords");
  texts->kept[texts->count++] = text;
  return parse_bytes(text, "a path");
}

static void parse_option(const Option *option, VALUE given, void *into, Texts *texts) {
  void *at = (char *)into + option->at;
  uint64_t number = 0;
  switch (option->kind) {
    case OPTION_FLAG:
      *(uint32_t *)at = RTEST(given) ? 1 : 0;
      return;
    case OPTION_U32:
      number = parse_u64(given, option->name);
      if (number > UINT32_MAX) rb_raise(rb_eArgError, "%s must be below 2**32", option->name);
      *(uint32_t *)at = (uint32_t)number;
      return;
    case OPTION_U64:
      *(uint64_t *)at = parse_u64(given, option->name);
      return;
    case OPTION_SECONDS:
      *(int64_t *)at = parse_seconds(given, option->name);
      return;
    case OPTION_MILLISECONDS:
      *(int64_t *)at = parse_seconds(given, option->name) / 1000000;
      return;
    case OPTION_TEXT:
      *(leat_bytes *)at = parse_text(given, texts);
      return;
    case OPTION_CHOICE:
      *(uint32_t *)at = parse_choice(option, given);
      return;
    case OPTION_PARTITION:
      *(uint32_t *)at = parse_partition(given);
      return;
    case OPTION_FROM:
      parse_from(given, at, (uint64_t *)((char *)into + option->second));
      return;
  }
}

typedef struct Parsing {
  const Option *table;
  void *into;
  Texts *texts;
} Parsing;

static int parse_pair(VALUE name, VALUE given, VALUE context) {
  const Parsing *parsing = (const Parsing *)context;
  const Option *option = parsing->table;
  const VALUE word = word_of(name, "a keyword");
  while (option->name != NULL && !is_word(word, option->name)) ++option;
  if (option->name == NULL) rb_raise(rb_eArgError, "unknown keyword: %+" PRIsVALUE, name);
  if (!NIL_P(given)) parse_option(option, given, parsing->into, parsing->texts);
  return ST_CONTINUE;
}

leat_bytes parse_options(int argc, const VALUE *argv, int names, const Option *table, void *into,
                         Texts *texts) {
  leat_bytes name = {"", 0};
  VALUE named = Qnil;
  Parsing parsing = {table, into, texts};
  if (rb_keyword_given_p()) named = argv[--argc];
  rb_check_arity(argc, names, names);
  if (names == 1) {
    VALUE text = argv[0];
    (void)parse_bytes(text, "a name");
    text = rb_str_new_frozen(text);
    texts->kept[texts->count++] = text;
    name = parse_bytes(text, "a name");
  }
  if (!NIL_P(named)) rb_hash_foreach(named, parse_pair, (VALUE)&parsing);
  return name;
}

// ---- Texts ------------------------------------------------------------------------------------

VALUE text_of(WriteText write, void *context) {
  uint64_t capacity = 512;
  uint64_t size = 0;
  int32_t detail = 0;
  int32_t code = LEAT_ERR_BUFFER_TOO_SMALL;
  VALUE text = Qnil;
  while (code == LEAT_ERR_BUFFER_TOO_SMALL) {  // It may have grown meanwhile.
    if (size + 256 > capacity) capacity = size + 256;
    text = rb_utf8_str_new(NULL, (long)capacity);
    code = write(context, RSTRING_PTR(text), capacity, &size, &detail);
  }
  if (code != LEAT_OK) raise_code(code, detail);
  rb_str_set_len(text, (long)size);
  return text;
}

// Nothing lets other threads run meanwhile, so none closes the handle.
VALUE text_of_handle(VALUE object, WriteText write) {
  Handle *handle = handle_of(object);
  handle_enter(handle);
  handle_leave(handle);
  return text_of(write, handle->pointer);
}

VALUE lines_of(VALUE text) { return rb_str_split(text, "\n"); }
