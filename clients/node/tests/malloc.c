// For the tests: the bytes that malloc has given out. They are exact, where pages that are resident are not.
#include <malloc.h>
#include <node_api.h>

static napi_value allocated(napi_env env, napi_callback_info info) {
  const struct mallinfo2 has = mallinfo2();
  napi_value result = NULL;
  (void)info;
  (void)napi_create_double(env, (double)(has.uordblks + has.hblkhd), &result);
  return result;
}

NAPI_MODULE_INIT() {
  napi_value function = NULL;
  (void)exports;
  (void)napi_create_function(env, "allocated", NAPI_AUTO_LENGTH, allocated, NULL, &function);
  return function;
}
