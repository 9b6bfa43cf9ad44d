-- If these failed, a Lua program that runs for long would run out of memory or descriptors, or keep a CPU busy.
-- A process that runs for long: what it opens and closes, drops, or waits for, costs it nothing that stays.
local harness = ...
local leat = require "leat"
local allocated = require "malloc"
local tests, new_topic, equal, fails = harness.tests, harness.new_topic, harness.equal, harness.fails

-- Bytes that malloc gave out, and that Lua holds; resident KiB; threads, descriptors.
local function figures()
  collectgarbage()
  collectgarbage()
  local own, lua = allocated(), collectgarbage("count") * 1024
  local file = io.open("/proc/self/status")
  local status = file:read("*a")
  file:close()
  local list = io.popen("ls /proc/$PPID/fd | wc -l") -- The shell's parent is this process.
  local descriptors = list:read("*n")
  list:close()
  local function number(name) return tonumber(status:match(name .. ":%s+(%d+)")) end
  return {own = own, lua = lua, resident = number("VmRSS"), threads = number("Threads"), descriptors = descriptors}
end

function tests.what_10000_times_is_opened_and_closed_leaves_nothing()
  local topic, name = new_topic({capacity_bytes = 1048576, segment_bytes = 131072})
  topic:publisher():publish("x")
  local function once()
    local opened = assert(leat.open(name))
    local publisher, subscriber = assert(opened:publisher()), assert(opened:subscriber({from = "beginning"}))
    local group = assert(opened:group("workers"))
    local member = assert(group:join())
    equal("x", subscriber:receive(1).value)
    assert(subscriber:wait_fd() and member:wait_fd())
    fails("timeout", member:receive(0))
    assert(publisher:claim(9)) -- Closing its publisher aborts it.
    for _, one in ipairs({member, group, subscriber, publisher, opened}) do one:close() end
  end
  for _ = 1, 300 do once() end
  local rounds = 425
  local before = figures()
  local after, own, lua = before, math.huge, math.huge
  for _ = 1, 4 do -- 10,200 of six kinds. What is leaked grows in each part; what is kept for later use does not.
    local start = after
    for _ = 1, rounds do once() end
    after = figures()
    own, lua = math.min(own, (after.own - start.own) / rounds), math.min(lua, (after.lua - start.lua) / rounds)
  end
  assert(own < 100 and lua < 100, ("%g and %g bytes a round"):format(own, lua))
  assert(after.resident < before.resident + 4096, after.resident - before.resident)
  equal(before.threads, after.threads)
  assert(after.descriptors <= before.descriptors + 2, after.descriptors)
  assert(topic:info().participant_count <= 1)
end

function tests.dropped_handles_are_closed_by_the_collector()
  local topic, name = new_topic()
  local descriptors = figures().descriptors
  for _ = 1, 100 do -- Beyond the participant slots of the topic, if they were not closed.
    for _ = 1, 3 do
      local opened = assert(leat.open(name))
      assert(opened:subscriber():wait_fd())
      assert(opened:publisher():claim(5))
      assert(opened:group("workers"):join())
    end
    collectgarbage()
    collectgarbage()
  end
  assert(figures().descriptors <= descriptors + 2) -- Not one for each.
  equal(0, topic:info().participant_count)
end

-- Of the process' own time. Cold caches of a loaded machine add to it, so the least of three counts.
function tests.an_idle_wait_costs_under_a_thousandth_of_the_cpu()
  local topic = new_topic()
  local subscriber, member = topic:subscriber(), topic:group("workers"):join()
  local calls = {
    {2, "timeout", function(seconds) return subscriber:receive(seconds) end},
    {2, "timeout", function(seconds) return member:receive(seconds) end},
    {1.2, "timeout", function(seconds) return subscriber:wait(seconds) end},
    {1.2, "timeout", function(seconds) return leat.wait_any({subscriber}, seconds) end},
    -- It looks four times a second, which takes longer where a virtual machine is slow to wake up (decision 26).
    {1.5, "not_found", function(seconds) return leat.open("never", {timeout = seconds}) end, 0.002},
  }
  for _, one in ipairs(calls) do
    local seconds, error_name, wait, most = one[1], one[2], one[3], one[4] or 0.001
    local least = math.huge
    for _ = 1, 3 do
      local before = os.clock()
      fails(error_name, wait(seconds))
      least = math.min(least, (os.clock() - before) / seconds)
      if least < most then break end
    end
    assert(least < most, least)
  end
end
