// Leat::Error, with one class for each code of the library; and Leat::ClosedError.
#include <ctype.h>
#include <string.h>

#include "leat_ruby.h"

enum { MAX_CODES = 256 };

static VALUE error_class;
static VALUE closed_class;
static VALUE classes[MAX_CODES];  // 0: none. Constants of the module, so nobody collects them.

NORETURN(static void raise_with(int32_t code, int32_t detail, VALUE sentence));
static void raise_with(int32_t code, int32_t detail, VALUE sentence) {
  const VALUE class = code > 0 && code < MAX_CODES && classes[code] != 0 ? classes[code] : error_class;
  const VALUE error = rb_exc_new_str(class, sentence);
  rb_ivar_set(error, rb_intern("@code"), INT2NUM(code));
  rb_ivar_set(error, rb_intern("@name"), rb_str_freeze(rb_utf8_str_new_cstr(leat_error_name(code))));
  rb_ivar_set(error, rb_intern("@detail"), INT2NUM(detail));
  rb_exc_raise(error);
}

void raise_code(int32_t code, int32_t detail) {
  char sentence[LEAT_DESCRIPTION_SIZE] = "";
  if (code == ENDED_BY_RUBY) rb_jump_tag(detail);
  (void)leat_describe(code, detail, sentence, sizeof sentence);
  raise_with(code, detail, rb_utf8_str_new_cstr(sentence));
}

void raise_about(const Subject *subject, int32_t code, int32_t detail) {
  char sentence[EXPLANATION_SIZE] = "";
  if (code == ENDED_BY_RUBY) rb_jump_tag(detail);
  explain(subject, code, detail, sentence);
  raise_with(code, detail, rb_utf8_str_new_cstr(sentence));
}

void raise_busy(const char *format, const char *what) {
  raise_with(LEAT_ERR_BUSY, 0, rb_sprintf(format, what));
}

void raise_closed(const char *what) { rb_raise(closed_class, "%s", what); }

// "not_found" -> "NotFound"
static void class_name(const char *name, char *into, size_t capacity) {
  size_t size = 0;
  int starts = 1;
  for (; *name != '\0' && size + 1 < capacity; ++name) {
    if (*name == '_') {
      starts = 1;
      continue;
    }
    into[size++] = starts ? (char)toupper((unsigned char)*name) : *name;
    starts = 0;
  }
  into[size] = '\0';
}

void add_errors(void) {
  int32_t code = 1;
  error_class = rb_define_class_under(leat_module, "Error", rb_eStandardError);
  rb_define_attr(error_class, "code", 1, 0);
  rb_define_attr(error_class, "name", 1, 0);
  rb_define_attr(error_class, "detail", 1, 0);
  closed_class = rb_define_class_under(leat_module, "ClosedError", rb_eIOError);
  for (; code < MAX_CODES && strcmp(leat_error_name(code), "unknown") != 0; ++code) {
    char name[80];
    class_name(leat_error_name(code), name, sizeof name);
    classes[code] = rb_define_class_under(leat_module, name, error_class);
    rb_define_const(classes[code], "CODE", INT2NUM(code));
    rb_define_const(classes[code], "NAME", rb_str_freeze(rb_utf8_str_new_cstr(leat_error_name(code))));
  }
}
