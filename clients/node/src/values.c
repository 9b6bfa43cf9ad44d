// Bytes, numbers and texts between JavaScript and C.
#include <stdlib.h>
#include <string.h>

#include "addon.h"

int bytes_of(napi_env env, napi_value value, leat_bytes *bytes) {
  static const char nothing[1];  // An empty key has an address.
  bool is_view = false;
  void *data = NULL;
  size_t size = 0;
  // Buffer means any view here; the size is in bytes.
  if (napi_is_buffer(env, value, &is_view) != napi_ok || !is_view) return 0;
  if (napi_get_buffer_info(env, value, &data, &size) != napi_ok) return 0;
  bytes->data = data != NULL ? data : nothing;
  bytes->size = data != NULL ? size : 0;  // No address: it was given to another thread.
  return 1;
}

void *memory_of(napi_env env, napi_value value, uint64_t size) {
  leat_bytes bytes = {NULL, 0};
  if (!bytes_of(env, value, &bytes) || bytes.size < size) return NULL;
  return (void *)bytes.data;
}

int is_nothing(napi_env env, napi_value value) {
  napi_valuetype type = napi_undefined;
  return napi_typeof(env, value, &type) != napi_ok || type == napi_undefined || type == napi_null;
}

double double_of(napi_env env, napi_value value, double otherwise) {
  double result = otherwise;
  return napi_get_value_double(env, value, &result) == napi_ok ? result : otherwise;
}

uint32_t u32_of(napi_env env, napi_value value, uint32_t otherwise) {
  const double given = double_of(env, value, -1);
  return given >= 0 && given <= UINT32_MAX ? (uint32_t)given : otherwise;
}

char *text_of(napi_env env, napi_value value, uint64_t *size) {
  size_t length = 0;
  char *text = NULL;
  if (napi_get_value_string_utf8(env, value, NULL, 0, &length) != napi_ok) return NULL;
  text = malloc(length + 1);
  if (text == NULL) return NULL;
  if (napi_get_value_string_utf8(env, value, text, length + 1, &length) != napi_ok) {
    free(text);
    return NULL;
  }
  *size = length;
  return text;
}

napi_value make_text(napi_env env, const char *text, uint64_t size) {
  napi_value result = NULL;
  (void)napi_create_string_utf8(env, text, (size_t)size, &result);
  return result;
}

int32_t read_text(WriteText write, void *context, char **text, uint64_t *size, int32_t *detail) {
  uint64_t capacity = 512;
  char *buffer = malloc(capacity);
  int32_t code = LEAT_ERR_NO_MEMORY;
  *text = NULL;
  while (buffer != NULL) {
    code = write(context, buffer, capacity, size, detail);
    if (code != LEAT_ERR_BUFFER_TOO_SMALL) break;
    capacity = *size + 256;  // It may grow meanwhile.
    free(buffer);
    buffer = malloc(capacity);
    code = LEAT_ERR_NO_MEMORY;
  }
  if (code == LEAT_OK)
    *text = buffer;
  else
    free(buffer);
  return code;
}

napi_value text_result(napi_env env, WriteText write, void *context) {
  char *text = NULL;
  uint64_t size = 0;
  int32_t detail = 0;
  napi_value result = NULL;
  const int32_t code = read_text(write, context, &text, &size, &detail);
  if (code != LEAT_OK) return failure(env, code, detail);
  result = make_text(env, text, size);
  free(text);
  return result;
}
