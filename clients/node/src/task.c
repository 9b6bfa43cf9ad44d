// Calls of the library that may take long, on threads of Node's pool.
#include <stdlib.h>

#include "addon.h"

Task *task_new(void (*run)(Task *), napi_value (*result)(napi_env, Task *)) {
  Task *task = calloc(1, sizeof *task);
  if (task == NULL) return NULL;
  task->run = run;
  task->result = result;
  return task;
}

void task_free(Task *task) {
  if (task->table != NULL) free_options(task->table, &task->options);
  if (task->handle != NULL) handle_leave(task->handle);
  free(task->name);
  free(task->text);
  free(task);
}

static void execute(napi_env env, void *data) {
  Task *task = data;
  (void)env;
  task->run(task);
}

static void complete(napi_env env, napi_status status, void *data) {
  Task *task = data;
  napi_value answer = NULL;
  napi_value result = NULL;
  if (status == napi_cancelled) task->code = LEAT_ERR_STOPPED;
  if (task->code == LEAT_OK && task->result != NULL) result = task->result(env, task);
  if (napi_create_array_with_length(env, 3, &answer) == napi_ok) {
    (void)napi_set_element(env, answer, 0, number(env, task->code));
    (void)napi_set_element(env, answer, 1, number(env, task->detail));
    if (result != NULL) (void)napi_set_element(env, answer, 2, result);
    (void)napi_resolve_deferred(env, task->deferred, answer);
  }
  (void)napi_delete_async_work(env, task->work);
  task_free(task);
}

typedef struct Closing {
  uv_work_t work;  // First.
  Addon *addon;
  Kind kind;
  void *pointer;
} Closing;

static void closing_run(uv_work_t *work) {
  const Closing *closing = (Closing *)work;
  handle_close_pointer(closing->kind, closing->pointer);
}

static void closing_done(uv_work_t *work, int status) {
  Addon *addon = ((Closing *)work)->addon;
  (void)status;
  free(work);
  if (--addon->closing_handles != 0) return;
  Task *task = addon->first_waiting;
  addon->first_waiting = NULL;
  addon->after_waiting = &addon->first_waiting;
  while (task != NULL) {
    Task *next = task->next;
    (void)napi_queue_async_work(task->env, task->work);
    task = next;
  }
  addon_settle(addon);
}

void task_close(Addon *addon, Kind kind, void *pointer) {
  Closing *closing = calloc(1, sizeof *closing);
  if (closing != NULL) {
    closing->addon = addon;
    closing->kind = kind;
    closing->pointer = pointer;
    if (uv_queue_work(addon->loop, &closing->work, closing_run, closing_done) == 0) {
      ++addon->closing_handles;
      return;
    }
    free(closing);
  }
  handle_close_pointer(kind, pointer);
}

// To the pool, behind what closes.
static napi_status begin(napi_env env, Task *task) {
  Addon *addon = addon_of(env);
  task->env = env;
  if (addon->closing_handles == 0) return napi_queue_async_work(env, task->work);
  *addon->after_waiting = task;
  addon->after_waiting = &task->next;
  return napi_ok;
}

napi_value task_start(napi_env env, Task *task) {
  napi_value promise = NULL;
  napi_value name = make_text(env, "leat", 4);
  if (napi_create_async_work(env, NULL, name, execute, complete, task, &task->work) != napi_ok) {
    task_free(task);
    return failure(env, LEAT_ERR_NO_MEMORY, 0);
  }
  if (napi_create_promise(env, &task->deferred, &promise) != napi_ok ||
      begin(env, task) != napi_ok) {
    (void)napi_delete_async_work(env, task->work);
    task_free(task);
    return failure(env, LEAT_ERR_NO_MEMORY, 0);
  }
  return promise;
}
