-- How fast this client is: speed.lua TOPIC SIZE RECORDS prints a line of JSON, nanoseconds for each record.
--
-- RECORDS is a multiple of 64, and the topic holds so many and more.
local leat = require "leat"

local BATCH = 64
local records = tonumber(arg[3])
local value = ("x"):rep(tonumber(arg[2]))
local values = {}
for i = 1, BATCH do values[i] = value end
local topic
local first  -- The offset at which the last `records` records begin.

local function publish(publisher)
  for _ = 1, records do
    local offset, problem = publisher:publish(value)
    if not offset then error(problem) end
  end
end

local function publish_batches(publisher)
  for _ = 1, records, BATCH do first = assert(publisher:publish_batch(values)) end
  first = first + BATCH - records
end

-- What was read is looked at: the last bytes of all values, as their sum.
local function check(sum)
  if sum ~= records * 120 then error("a record is not what was published") end
end

local function read(subscriber)
  local left, sum = records, 0
  while left > 0 do
    local values = assert(subscriber:read_values(BATCH))
    for i = 1, #values do sum = sum + values[i]:byte(-1) end
    left = left - #values
  end
  check(sum)
end

local function view(subscriber)
  local left, sum = records, 0
  local function use(batch)
    for i = 1, #batch do sum = sum + batch[i]:byte(-1) end
    left = left - #batch
  end
  while left > 0 do subscriber:view(use, BATCH) end
  check(sum)
end

local function new_publisher() return assert(topic:publisher()) end
local function new_subscriber() return assert(topic:subscriber({from = {offset = first}})) end

-- Runs it with a handle of its own: once for the JIT compiler, then measured. The time that the processor spent is
-- the time that passed, as nothing waits.
local function measure(run, open)
  local seconds
  for _ = 1, 2 do
    local handle = open()
    collectgarbage()  -- What was made before is not this one's to collect.
    local start = os.clock()
    run(handle)
    seconds = os.clock() - start
    handle:close()
  end
  return seconds * 1e9 / records
end

local is_done, problem = pcall(function()
  topic = assert(leat.open(arg[1], {timeout = 0}))
  local line = '{"runtime": "%s", "publish_ns": %.1f, "batch_ns": %.1f, "read_ns": %.1f, "view_ns": %.1f}'
  print(line:format(jit and jit.version or _VERSION, measure(publish, new_publisher),
                    measure(publish_batches, new_publisher), measure(read, new_subscriber),
                    measure(view, new_subscriber)))
end)
if not is_done then
  io.stderr:write("lua: ", tostring(problem), "\n")
  os.exit(1)
end
