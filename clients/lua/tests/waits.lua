-- If these failed, a Lua program would hang in a wait that only it could end, or lose the record that came just as a hook
-- raised an error, as Ctrl-C does.
local harness = ...
local leat = require "leat"
local tests, new_topic = harness.tests, harness.new_topic
local equal, fails, raises = harness.equal, harness.fails, harness.raises

-- Publishes until that fails.
local function fill(call)
  local published, failed
  repeat published, failed = call(("x"):rep(1000)) until not published
  return nil, failed
end

local function of_one_thread()
  local topic = new_topic({capacity_bytes = 65536})
  local publisher = topic:publisher()
  return topic, {
    function(value) return publisher:publish(value) end,
    function(value) return publisher:publish_batch({value, {value = value}}) end,
    function(value) return publisher:claim(#value, function(claim) claim:write(value) end) end,
  }
end

function tests.a_publisher_that_only_its_own_thread_could_make_room_for()
  local topic, calls = of_one_thread()
  local subscriber = topic:subscriber()
  subscriber:poll()
  for _, call in ipairs(calls) do fails("would_deadlock", fill(call)) end
  subscriber:close()
  local member = topic:group("workers"):join()
  assert(calls[1]("x"))
  assert(member:receive(5))
  for _, call in ipairs(calls) do fails("would_deadlock", fill(call)) end
end

-- The library gives a program a second to hand a new reader over.
function tests.the_same_if_nobody_has_read_yet()
  local topic, calls = of_one_thread()
  local subscriber = topic:subscriber()
  debug.sethook(function() end, "c") -- Waits let hooks run, which cuts them in short slices.
  fails("would_deadlock", fill(calls[1]))
  debug.sethook()
  fails("timeout", topic:publisher():publish(("x"):rep(1000), {timeout = 0.02}))
  subscriber:close()
end

-- What the calls return: a list of values.
local function values_of(list)
  local values = {}
  for _, entry in ipairs(list) do values[#values + 1] = type(entry) == "table" and entry.value or entry end
  return values
end
local reads = {
  receive = function(reader) return {reader:receive(5).value} end,
  receive_batch = function(reader) return values_of(reader:receive_batch(64, 5)) end,
  read_values = function(reader) return reader:read_values(64, 5) end,
  records = function(reader) for record in reader:records() do return {record.value} end end,
  view = function(reader)
    return reader:view(function(batch)
      local values = {}
      for _, entry in ipairs(batch) do values[#values + 1] = entry:value() end
      return values
    end, 64, 5)
  end,
}

-- A hook publishes while the call waits; the next one, when the records are there, raises.
local function interrupted(publisher, values, call, reader)
  raises("by a hook", harness.meanwhile, function()
    assert(publisher:publish_batch(values))
    debug.sethook(function()
      debug.sethook()
      error("by a hook")
    end, "c")
  end, function() call(reader) end)
end

local function loses_nothing(publisher, reader, call)
  local wanted, got = {}, {}
  for i = 1, 3 do
    local values = {"a" .. i, "b" .. i}
    interrupted(publisher, values, call, reader)
    for _, value in ipairs(values) do wanted[#wanted + 1] = value end
    while #got < #wanted do
      for _, value in ipairs(call(reader)) do got[#got + 1] = value end
    end
  end
  equal(table.concat(wanted, " "), table.concat(got, " "))
end

function tests.a_hook_that_raises_costs_no_record()
  local topic = new_topic()
  local publisher = topic:publisher()
  for _, call in pairs(reads) do loses_nothing(publisher, topic:subscriber(), call) end
  local member = topic:group("workers"):join()
  loses_nothing(publisher, member, reads.receive)
  loses_nothing(publisher, member, reads.receive_batch)
end

function tests.what_was_kept_counts_everywhere()
  local topic = new_topic()
  local publisher, subscriber, other = topic:publisher(), topic:subscriber(), topic:subscriber()
  local offset = subscriber:offset()
  interrupted(publisher, {"a", "b"}, reads.receive_batch, subscriber)
  assert(subscriber:wait(0))
  other:poll()
  equal(2, leat.wait_any({other, subscriber}, 0))
  equal(offset, subscriber:offset())
  raises("receive() them first", subscriber.view, subscriber, print)
  equal("a", subscriber:receive(0).value)
  equal(offset + 1, subscriber:offset())
  equal("b", subscriber:read_values()[1])
  equal(offset + 2, subscriber:offset())
  equal(0, #subscriber:poll())
end

-- A hook runs as soon as a call of the member has a result.
function tests.what_a_member_kept_is_not_acknowledged_unseen()
  local topic = new_topic()
  local publisher, member = topic:publisher(), topic:group("workers"):join()
  interrupted(publisher, {"a", "b"}, reads.receive_batch, member)
  assert(member:wait(0))
  equal(0, assert(member:acknowledge_all()))
  local again = assert(member:receive_batch(2, 5))
  equal(2, again[1].deliveries)
  equal(2, assert(member:acknowledge(again)) + (again[2] and 0 or assert(member:acknowledge(member:receive(5)))))
  equal(0, member:in_flight())
end
