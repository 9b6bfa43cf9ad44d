// The extension of Ruby: leat/leat.so, which lib/leat.rb requires.
#include "leat_ruby.h"

VALUE leat_module;

__attribute__((visibility("default"))) void Init_leat(void);

void Init_leat(void) {
  leat_module = rb_define_module("Leat");
  if (leat_abi_check(LEAT_ABI_VERSION) != LEAT_OK) rb_raise(rb_eLoadError, "libleat is too old: %s", leat_version());
  rb_define_const(leat_module, "VERSION", rb_str_freeze(rb_utf8_str_new_cstr(leat_version())));
  add_errors();
  add_handles();
  add_records();
  add_topics();
  add_publishers();
  add_claims();
  add_subscribers();
  add_views();
  add_groups();
  add_members();
}
