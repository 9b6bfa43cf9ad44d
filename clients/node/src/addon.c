// The addon's beginning and end in each environment, and what belongs to no handle.
#include <stdlib.h>
#include <string.h>

#include "addon.h"

Addon *addon_of(napi_env env) {
  void *data = NULL;
  (void)napi_get_instance_data(env, &data);
  return data;
}

napi_value number(napi_env env, double value) {
  napi_value result = NULL;
  (void)napi_create_double(env, value, &result);
  return result;
}

napi_value failure(napi_env env, int32_t code, int32_t detail) {
  Addon *addon = addon_of(env);
  if (addon != NULL) addon->detail = detail;
  return number(env, -(double)code);
}

static napi_value detail(napi_env env, napi_callback_info info) {
  (void)info;
  return number(env, addon_of(env)->detail);
}

// describe(code, detail)
static napi_value describe(napi_env env, napi_callback_info info) {
  char sentence[LEAT_DESCRIPTION_SIZE] = "";
  Call call;
  call_begin(env, info, &call);
  (void)leat_describe((int32_t)double_of(env, call.args[0], 0),
                      (int32_t)double_of(env, call.args[1], 0), sentence, sizeof sentence);
  return make_text(env, sentence, strlen(sentence));
}

// error_name(code), and gap_reason(number)
static napi_value error_name(napi_env env, napi_callback_info info) {
  Call call;
  call_begin(env, info, &call);
  const char *name = leat_error_name((int32_t)double_of(env, call.args[0], -1));
  return make_text(env, name, strlen(name));
}
static napi_value gap_reason(napi_env env, napi_callback_info info) {
  Call call;
  call_begin(env, info, &call);
  const char *name = leat_gap_reason_name(u32_of(env, call.args[0], 0));
  return make_text(env, name, strlen(name));
}

static napi_value version(napi_env env, napi_callback_info info) {
  (void)info;
  return make_text(env, leat_version(), strlen(leat_version()));
}

static const Method own_methods[] = {
    {"detail", detail},        {"describe", describe}, {"errorName", error_name},
    {"gapReason", gap_reason}, {"version", version},   {NULL, NULL},
};

static int add(napi_env env, napi_value exports, const Method *methods) {
  for (; methods->name != NULL; ++methods) {
    napi_value function = NULL;
    if (napi_create_function(env, methods->name, NAPI_AUTO_LENGTH, methods->call, NULL,
                             &function) != napi_ok ||
        napi_set_named_property(env, exports, methods->name, function) != napi_ok)
      return 0;
  }
  return 1;
}

// The loop must not end while it knows a poller, or closes something. Other handles are closed later, by their finalizers.
static void end(napi_async_cleanup_hook_handle hook, void *data) {
  Addon *addon = data;
  addon->is_ending = 1;
  for (Handle *handle = addon->handles; handle != NULL; handle = handle->next)
    handle_end_waits(handle);
  (void)hook;
  addon_settle(addon);
}

void addon_settle(Addon *addon) {
  if (addon->is_ending && addon->closing_pollers == 0 && addon->closing_handles == 0)
    (void)napi_remove_async_cleanup_hook(addon->hook);
}

// Finalizers of handles may come later still.
static void forget(napi_env env, void *data, void *hint) {
  Addon *addon = data;
  (void)env;
  (void)hint;
  for (Handle *handle = addon->handles; handle != NULL; handle = handle->next) handle->addon = NULL;
  if (addon->handles != NULL) addon->handles->before = NULL;
  free(addon);
}

NAPI_MODULE_INIT() {
  Addon *addon = calloc(1, sizeof *addon);
  if (addon != NULL) addon->after_waiting = &addon->first_waiting;
  if (addon == NULL || napi_get_uv_event_loop(env, &addon->loop) != napi_ok ||
      napi_set_instance_data(env, addon, forget, NULL) != napi_ok) {
    free(addon);
    return NULL;
  }
  if (napi_add_async_cleanup_hook(env, end, addon, &addon->hook) != napi_ok) return NULL;
  if (!add(env, exports, own_methods) || !add(env, exports, handle_methods) ||
      !add(env, exports, topic_methods) || !add(env, exports, publisher_methods) ||
      !add(env, exports, subscriber_methods) || !add(env, exports, group_methods) ||
      !add(env, exports, member_methods))
    return NULL;
  return exports;
}
