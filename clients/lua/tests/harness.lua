-- A test framework in a few lines: a function of `tests` is a test.
local harness = {tests = {}}
local leat = require "leat"
local names = {}
harness.is_jit, harness.ffi = pcall(require, "ffi")
setmetatable(harness.tests, {__newindex = function(all, name, test)
  names[#names + 1] = name
  rawset(all, name, test)
end})

function harness.equal(wanted, got)
  if wanted ~= got then error(("wanted %s, got %s"):format(tostring(wanted), tostring(got)), 2) end
end

-- What the library answers that is no success.
function harness.fails(name, result, failed)
  if result ~= nil then error(("no %s, but %s"):format(name, tostring(result)), 2) end
  if failed.name ~= name then error(("wanted %s, got %s"):format(name, failed.name), 2) end
  return failed
end

-- What a call raises that no program should make.
function harness.raises(text, call, ...)
  local is_done, failed = pcall(call, ...)
  if is_done then error("nothing was raised: " .. text, 2) end
  if not tostring(failed):find(text, 1, true) then error(("wanted '%s', got '%s'"):format(text, tostring(failed)), 2) end
end

-- The same where it is one of the library's errors.
function harness.raises_code(name, call, ...)
  local is_done, failed = pcall(call, ...)
  if is_done then error("nothing was raised: " .. name, 2) end
  if type(failed) ~= "table" or failed.name ~= name then error(("wanted %s, got '%s'"):format(name, tostring(failed)), 2) end
end

-- A topic of the test's own, and its name.
local count = 0
function harness.new_topic(options)
  count = count + 1
  local name = "topic-" .. count
  return assert(leat.create(name, options)), name
end

-- What runs `act` when it is collected.
function harness.finalized(act)
  local object = newproxy and newproxy(true) or setmetatable({}, {}) -- luacheck: ignore
  local meta = getmetatable(object)
  meta.__gc = act
  if not newproxy then setmetatable(object, meta) end -- luacheck: ignore
  return object
end

-- Runs it while the collector has much to do.
function harness.while_collecting(call)
  local pause, step = collectgarbage("setpause", 1), collectgarbage("setstepmul", 1000)
  call()
  collectgarbage("setpause", pause)
  collectgarbage("setstepmul", step)
end

function harness.seconds()
  local file = io.open("/proc/uptime")
  local now = tonumber(file:read("*l"):match("^[%d.]+"))
  file:close()
  return now
end

-- Calls `act` in the middle of `call`, which waits: by a hook, as signals are handled.
function harness.meanwhile(act, call)
  local started = harness.seconds()
  debug.sethook(function()
    if harness.seconds() - started < 0.03 then return end -- It does not wait yet.
    debug.sethook()
    act()
  end, "c")
  return call()
end

-- Runs those named on the command line, or all; ends the program.
function harness.run()
  local wanted = {}
  for _, name in ipairs(arg) do wanted[name] = true end
  local failures = 0
  for _, name in ipairs(names) do
    if #arg == 0 or wanted[name] then
      local is_done, failed = xpcall(harness.tests[name], debug.traceback)
      debug.sethook()
      collectgarbage()
      if not is_done then failures = failures + 1 end
      print((is_done and "ok " or "FAILED ") .. name .. (is_done and "" or ": " .. tostring(failed)))
    end
  end
  os.exit(failures == 0 and 0 or 1)
end

return harness
