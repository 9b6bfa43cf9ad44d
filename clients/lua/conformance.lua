-- The driver of the Lua client for tests/conformance, whose README.md says what it reads and prints. For Lua 5.4 and
-- LuaJIT.
local leat = require "leat"
local is_jit, ffi = pcall(require, "ffi")

-- The 64-bit FNV-1a hash of a long text, in 16 hexadecimal digits. The arithmetic differs by version, and so does what
-- the other one can read.
local hash
if is_jit then
  hash = assert(loadstring([[
    local bit = require "bit"
    return function(data)
      local value = 0xcbf29ce484222325ULL
      for i = 1, #data do value = bit.bxor(value, data:byte(i)) * 0x100000001b3ULL end
      return bit.tohex(value, 16)
    end]]))()
else
  hash = assert(load([[
    return function(data)
      local value = 0xcbf29ce484222325
      for i = 1, #data do value = (value ~ data:byte(i)) * 0x100000001b3 end
      return string.format("%016x", value)
    end]]))()
end

local function encode(data)
  if #data > 64 then return #data .. "*" .. hash(data) end
  return (data:gsub("[^%w%-_.,/+]", function(byte) return ("%%%02X"):format(byte:byte()) end))
end

local function decode(text)
  return (text:gsub("%%(%x%x)", function(digits) return string.char(tonumber(digits, 16)) end))
end

local function from_of(text)
  local kind, number = text:match("^(%a+):(%d+)$")
  if kind then return {[kind] = tonumber(number)} end
  return text
end

-- ---- The words of a line ----------------------------------------------------------------------------

local Command = {}
Command.__index = Command

local function parse(line)
  local command = setmetatable({words = {}, options = {}, given = {}}, Command)
  for word in line:gmatch("[^ ]+") do
    local name, value = word:match("^([^=]*)=(.*)$")
    if name then
      command.options[#command.options + 1] = {name, value}
      command.given[name] = value
    elseif command.name then
      command.words[#command.words + 1] = word
    else
      command.name = word
    end
  end
  return command
end

function Command:all(name)
  local values = {}
  for _, pair in ipairs(self.options) do
    if pair[1] == name then values[#values + 1] = pair[2] end
  end
  return values
end

function Command:number(name, otherwise)
  local text = self.given[name]
  return text and tonumber(text) or otherwise
end

function Command:flag(name)
  return self.given[name] == "1"
end

function Command:is_bad()
  local given = self.given
  return given.value and (given.count or given.prefix)
end

-- Seconds; nil is for ever.
function Command:timeout(otherwise)
  local text = self.given.timeout or otherwise or "0"
  return text ~= "never" and tonumber(text) / 1000 or nil
end

function Command:value()
  local fill = self.given.fill
  if not fill then return decode(self.given.value or "") end
  local size, byte = fill:match("^(%d+):(%x+)$")
  return string.rep(string.char(tonumber(byte, 16)), tonumber(size))
end

-- ---- Answers --------------------------------------------------------------------------------------

local function print_entry(one, behind)
  local text
  if one.gap then
    text = ("gap partition=%d offset=%d count=%d reason=%s"):format(one.partition, one.offset, one.count, one.reason)
  else
    text = ("record partition=%d offset=%d value=%s"):format(one.partition, one.offset, encode(one.value))
    if one.key then text = text .. " key=" .. encode(one.key) end
    for _, header in ipairs(one.headers or {}) do
      text = text .. " header=" .. encode(header[1]) .. ":" .. encode(header[2])
    end
    if one.timestamp_ms then text = text .. (" timestamp=%d"):format(one.timestamp_ms) end
  end
  print(text .. (behind or ""))
end

local handles = {}
local claims = {}
local deliveries = {} -- By the member's name, in the order of their numbers.
local commands = {}   -- Each returns what comes behind `ok`.

local function keep(command, handle)
  handles[command.words[1]] = handle
end

local function get(command, index)
  return handles[command.words[index or 1]]
end

local function with(name, value)
  return ("%s=%d"):format(name, value)
end

-- ---- Topics and publishers ----------------------------------------------------------------------------

function commands.create(command)
  local given = command.given
  keep(command, assert(leat.create(command.words[2], {
    policy = given.policy, capacity_bytes = command:number("capacity"), segment_bytes = command:number("segment"),
    partitions = command:number("partitions"), timestamps = command:flag("timestamps"),
    retain_all = command:flag("retain_all"), durable = given.durable,
    sync_interval = given.sync_interval and command:number("sync_interval") / 1000})))
end

function commands.open(command)
  keep(command, assert(leat.open(command.words[2], {timeout = command:timeout() or false})))
end

function commands.delete(command)
  assert(leat.delete(command.words[1], {force = command:flag("force")}))
end

function commands.info(command)
  local partitions = assert(get(command):info()).partitions
  local sum = 0
  for _, one in ipairs(partitions) do sum = sum + one["end"] end
  return with("partitions", #partitions) .. " " .. with("end", sum)
end

function commands.publisher(command)
  keep(command, assert(get(command, 2):publisher({
    exclusive = command:flag("exclusive"), partition = command:number("partition"),
    acknowledge = command.given.acknowledge})))
end

function commands.publish(command)
  local headers = {}
  for _, pair in ipairs(command:all("header")) do
    local name, value = pair:match("^(.-):(.*)$")
    headers[#headers + 1] = {decode(name), decode(value)}
  end
  local key = command.given.key
  return with("offset", assert(get(command):publish(command:value(), {
    key = key and decode(key), headers = headers, partition = command:number("partition"),
    timeout = command:timeout()})))
end

function commands.batch(command)
  local values = {}
  for _, value in ipairs(command:all("value")) do values[#values + 1] = decode(value) end
  local prefix = decode(command.given.prefix or "")
  for i = 1, command:number("count", 0) do values[#values + 1] = prefix .. (i - 1) end
  return with("offset", assert(get(command):publish_batch(values, {timeout = command:timeout() or false})))
end

function commands.claim(command)
  local claim = assert(get(command):claim(command:number("size"), nil, command:timeout()))
  claims[command.words[1]] = claim
  return with("offset", claim:offset())
end

function commands.commit(command)
  local claim = claims[command.words[1]]
  assert(assert(claim:write(command:value(), 0)):commit())
end

function commands.abort(command)
  assert(claims[command.words[1]]:abort())
end

function commands.abandon(command)
  pcall(function()
    get(command):claim(10, function(claim)
      claim:write("unfinished")
      error("left by an error")
    end)
  end)
end

function commands.flush(command)
  assert(get(command):flush(command:timeout("10000")))
end

function commands.durable_offset(command)
  return with("offset", assert(get(command):durable_offset()))
end

-- ---- Subscribers ------------------------------------------------------------------------------------

function commands.subscriber(command)
  local in_place = command:flag("in_place")
  keep(command, assert(get(command, 2):subscriber({
    from = from_of(command.given.from or "end"), in_place = in_place,
    gating = not command:flag("lossy") and not in_place, partition = command:number("partition")})))
end

function commands.poll(command)
  for _, one in ipairs(assert(get(command):poll(command:number("limit", 64)))) do print_entry(one) end
end

function commands.take(command)
  local left = command:number("count", 1)
  while left > 0 do
    for _, one in ipairs(assert(get(command):receive_batch(math.min(left, 64), command:timeout("10000")))) do
      print_entry(one)
      if not one.gap then left = left - 1 end
    end
  end
end

function commands.view(command)
  local left = command:number("count", 1)
  while left > 0 do
    local _, failed = get(command):view(function(batch)
      for _, one in ipairs(batch) do
        local is_gap = type(one) == "table"
        print_entry(is_gap and one or one:record())
        if not is_gap then left = left - 1 end
      end
    end, math.min(left, 64), command:timeout("10000"))
    if failed then error(failed, 0) end
  end
end

function commands.wait(command)
  assert(get(command):wait(command:timeout()))
end

function commands.wait_any(command)
  local all = {}
  for i = 1, #command.words do all[i] = get(command, i) end
  return with("index", assert(leat.wait_any(all, command:timeout())) - 1)
end

function commands.offset(command)
  return with("offset", assert(get(command):offset(command:number("partition"))))
end

-- ---- Groups -----------------------------------------------------------------------------------------

function commands.group(command)
  local given = command.given
  local group = assert(get(command, 2):group(command.words[3], {
    from = from_of(given.from or "end"), mode = given.mode, by_key = command:flag("by_key"),
    lease = given.lease and command:number("lease") / 1000, max_deliveries = command:number("max_deliveries"),
    in_flight = command:number("in_flight")}))
  keep(command, group)
  return with("created", group:was_created() and 1 or 0)
end

function commands.find_group(command)
  keep(command, assert(get(command, 2):find_group(command.words[3])))
end

function commands.delete_group(command)
  assert(get(command):delete_group(command.words[2], {force = command:flag("force")}))
end

function commands.group_info(command)
  local info = assert(get(command):info())
  return with("returned", info.returned) .. " taking=" .. info.taking
end

function commands.seek(command)
  assert(get(command):seek(from_of(command.given.to), command:number("partition")))
end

function commands.position(command)
  return with("offset", assert(get(command):position(command:number("partition"))))
end

function commands.join(command)
  deliveries[command.words[1]] = {}
  keep(command, assert(get(command, 2):join({name = command.given.name})))
end

function commands.receive(command)
  local received = deliveries[command.words[1]]
  for _, one in ipairs(assert(get(command):receive_batch(command:number("limit", 1), command:timeout()))) do
    if one.gap then
      print_entry(one)
    else
      print_entry(one, (" delivery=%d deliveries=%d"):format(#received, one.deliveries))
      received[#received + 1] = one
    end
  end
end

local function named(command, index)
  return deliveries[command.words[1]][tonumber(command.words[index]) + 1]
end

function commands.acknowledge(command)
  if #command.words == 2 then return with("count", assert(get(command):acknowledge(named(command, 2)))) end
  local some = {}
  for i = 2, #command.words do some[#some + 1] = named(command, i) end
  return with("count", assert(get(command):acknowledge(some)))
end

function commands.acknowledge_up_to(command)
  return with("count", assert(get(command):acknowledge_up_to(named(command, 2))))
end

function commands.acknowledge_all(command)
  return with("count", assert(get(command):acknowledge_all()))
end

function commands.requeue(command)
  assert(get(command):requeue(named(command, 2), command:number("delay", 0) / 1000))
end

function commands.in_flight(command)
  return with("count", assert(get(command):in_flight()))
end

-- ---- All kinds of handles, and the loop -----------------------------------------------------------------

function commands.stop(command)
  assert(get(command):stop())
end

function commands.resume(command)
  assert(get(command):resume())
end

function commands.close(command)
  get(command):close()
end

function commands.error_names()
  local names = {}
  for name, code in pairs(leat.codes) do names[code] = name end
  for code = 0, #names do print(code .. " " .. names[code]) end
end

local function answer(line)
  local command = parse(line)
  local run = commands[command.name]
  if not run then
    print("error unknown_command")
    return
  end
  if command:is_bad() then
    print("error bad_command")
    return
  end
  local is_done, result = pcall(run, command)
  if is_done then
    print(result and "ok " .. result or "ok")
  elseif type(result) == "table" then
    print("error " .. result.name)
  else
    error(result, 0)
  end
end

local function fork(line)
  if not is_jit then
    print("not_applicable Lua has no fork")
    return
  end
  ffi.cdef "int fork(void); int waitpid(int, int *, int); void _exit(int);"
  io.stdout:flush()
  local child = ffi.C.fork()
  if child == 0 then
    answer(line)
    io.stdout:flush()
    ffi.C._exit(0)
  end
  ffi.C.waitpid(child, nil, 0)
end

for line in io.lines() do
  local word, rest = line:match("^(%S+) ?(.*)$")
  if word == "quit" then
    break
  elseif word == "start" or word == "finish" then
    print("not_applicable Lua has no threads")
  elseif word == "fork" then
    fork(rest)
  else
    answer(line)
  end
  io.stdout:flush()
end
io.stdout:flush()
os.exit(0) -- Closes nothing.
