// Claims: room for one record, to be written in place.
//
// The memory is never lent: write() copies into it, and what is committed is what was written, so nothing that was
// there before gets out.
#include <string.h>

#include "leat_lua.h"

typedef struct Claim {
  Handle *publisher;  // A reference is counted; NULL: none.
  leat_claim room;
  uint64_t at;       // Where the next bytes go.
  uint64_t written;  // Bytes up to the last that was written.
  int is_published;
  int32_t failed;  // What committing it ended with, if it is not published.
  int32_t detail;
} Claim;

static int is_open(const Claim *claim) {
  return claim->publisher != NULL && claim->publisher->pointer != NULL && claim->room.id != 0 &&
         claim->publisher->open == claim->room.id;
}

// Aborts a claim that nobody will finish; if another call is under way, when that ends.
static void leave(Claim *claim) {
  Handle *publisher = claim->publisher;
  if (!is_open(claim)) return;
  publisher->open = 0;
  if (publisher->users != 0) {
    publisher->left = claim->room;
  } else {
    (void)leat_publisher_abort(publisher->pointer, &claim->room, NULL);
  }
}

static int collect(lua_State *L) {
  Claim *claim = lua_touserdata(L, 1);
  if (claim->publisher == NULL) return 0;
  leave(claim);
  handle_drop(claim->publisher);
  claim->publisher = NULL;
  return 0;
}

static int close_claim(lua_State *L) {
  leave(luaL_checkudata(L, 1, "leat.claim"));
  return 0;
}

static int32_t try_claim(void *context, int64_t timeout_ns, int32_t *detail) {
  Claim *claim = context;
  const int32_t code =
      leat_publisher_claim(claim->publisher->pointer, claim->room.size, timeout_ns, &claim->room, detail);
  return code == LEAT_ERR_FULL && timeout_ns == 0 ? LEAT_ERR_TIMEOUT : code;
}

// ---- Writing and finishing ------------------------------------------------------------------------

// LEAT_OK, or why it is over.
static int32_t check(lua_State *L, const Claim *claim) {
  if (is_open(claim)) return claim->publisher->pid == this_process ? LEAT_OK : LEAT_ERR_FORKED;
  if (claim->publisher != NULL && claim->publisher->pointer == NULL) luaL_error(L, "the publisher is closed");
  return LEAT_ERR_NOT_IN_FLIGHT;
}

// Raised, not returned: a function that did not look would commit less than it meant.
static int refuse_write(lua_State *L, int32_t code) {
  (void)fail(L, code, 0);
  return lua_error(L);
}

// write(bytes [, at]): `at` counts from 0. Returns the claim.
static int write_bytes(lua_State *L) {
  Claim *claim = luaL_checkudata(L, 1, "leat.claim");
  const leat_bytes bytes = parse_bytes(L, 2, "what is written");
  const uint64_t at = lua_isnoneornil(L, 3) ? claim->at : parse_u64(L, 3, "at");
  const int32_t code = check(L, claim);
  if (code != LEAT_OK) return refuse_write(L, code);
  if (at > claim->room.size || bytes.size > claim->room.size - at)
    return refuse_write(L, LEAT_ERR_INVALID_ARGUMENT);
  if (at > claim->written) memset(claim->room.data + claim->written, 0, at - claim->written);
  memcpy(claim->room.data + at, bytes.data, bytes.size);
  claim->at = at + bytes.size;
  if (claim->at > claim->written) claim->written = claim->at;
  lua_settop(L, 1);
  return 1;
}

static int commit_size(lua_State *L, Claim *claim, uint64_t size) {
  Handle *publisher = claim->publisher;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  HANDLE_ENTER(L, publisher);
  if (size > claim->written && size <= claim->room.size)
    memset(claim->room.data + claim->written, 0, size - claim->written);
  code = leat_publisher_commit(publisher->pointer, &claim->room, size, &detail);
  if (code != LEAT_ERR_INVALID_ARGUMENT) {
    publisher->open = 0;
    claim->is_published = code == LEAT_OK;
    claim->failed = code;
    claim->detail = detail;
  }
  (void)handle_leave(publisher);
  return number_or(L, code, detail, claim->room.offset);
}

static int commit(lua_State *L) {
  Claim *claim = luaL_checkudata(L, 1, "leat.claim");
  const uint64_t size = lua_isnoneornil(L, 2) ? claim->written : parse_u64(L, 2, "size");
  const int32_t code = check(L, claim);
  return code != LEAT_OK ? fail(L, code, 0) : commit_size(L, claim, size);
}

static int abort_claim(lua_State *L) {
  Claim *claim = luaL_checkudata(L, 1, "leat.claim");
  int32_t detail = 0;
  int32_t code = check(L, claim);
  if (code != LEAT_OK) return fail(L, code, 0);
  HANDLE_ENTER(L, claim->publisher);
  code = leat_publisher_abort(claim->publisher->pointer, &claim->room, &detail);
  claim->publisher->open = 0;
  (void)handle_leave(claim->publisher);
  return nothing_or(L, code, detail);
}

static int get_size(lua_State *L) {
  push_u64(L, ((Claim *)luaL_checkudata(L, 1, "leat.claim"))->room.size);
  return 1;
}
static int get_offset(lua_State *L) {
  push_u64(L, ((Claim *)luaL_checkudata(L, 1, "leat.claim"))->room.offset);
  return 1;
}

// ---- Of publishers ------------------------------------------------------------------------------

// claim(size, function [, timeout]) returns the offset, nil if the function aborted it; or claim(size [, nil, timeout]),
// which returns the claim.
int publisher_claim(lua_State *L) {
  Handle *self = self_of(L);
  const uint64_t size = parse_u64(L, 2, "size");
  const int64_t timeout_ns = parse_timeout(L, 4);
  const leat_claim room = {NULL, size, 0, 0};
  Claim *claim = NULL;
  int32_t detail = 0;
  int32_t code = LEAT_OK;
  if (!lua_isnoneornil(L, 3)) luaL_checktype(L, 3, LUA_TFUNCTION);
  lua_settop(L, 3);
  claim = lua_newuserdatauv(L, sizeof(Claim), 0);
  memset(claim, 0, sizeof(Claim));
  claim->room = room;
  luaL_getmetatable(L, "leat.claim");
  lua_setmetatable(L, -2);
  HANDLE_ENTER(L, self);
  claim->publisher = self;
  ++self->references;
  code = wait_for(L, self, timeout_ns, ROOM_SLICES, try_claim, claim, &detail);
  if (code == LEAT_OK) self->open = claim->room.id;
  if (!handle_leave(self) && code == LEAT_OK) code = LEAT_ERR_STOPPED;
  if (code == LEAT_ERR_TIMEOUT && timeout_ns == 0) code = LEAT_ERR_FULL;
  if (code != LEAT_OK) return fail(L, code, detail);
  if (lua_isnil(L, 3)) return 1;
  // What the function leaves open is committed. An error aborts, and goes on.
  lua_pushvalue(L, 3);
  lua_pushvalue(L, 4);
  if (lua_pcall(L, 1, 0, 0) != 0) {
    leave(claim);
    return lua_error(L);
  }
  if (is_open(claim)) return commit_size(L, claim, claim->written);
  if (self->open == claim->room.id) return luaL_error(L, "the publisher is closed");  // Nothing was published.
  if (!claim->is_published && claim->failed == LEAT_OK) {  // The function aborted it.
    lua_pushnil(L);
    return 1;
  }
  return number_or(L, claim->failed, claim->detail, claim->room.offset);
}

void add_claims(lua_State *L) {
  static const luaL_Reg methods[] = {{"write", write_bytes}, {"commit", commit},     {"abort", abort_claim},
                                     {"size", get_size},     {"offset", get_offset}, {NULL, NULL}};
  const luaL_Reg *method = methods;
  luaL_newmetatable(L, "leat.claim");
  lua_pushboolean(L, 0);
  lua_setfield(L, -2, "__metatable");
  lua_pushcfunction(L, collect);
  lua_setfield(L, -2, "__gc");
  lua_pushcfunction(L, close_claim);
  lua_setfield(L, -2, "__close");
  lua_newtable(L);
  for (; method->name != NULL; ++method) {
    lua_pushcfunction(L, method->func);
    lua_setfield(L, -2, method->name);
  }
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
}
