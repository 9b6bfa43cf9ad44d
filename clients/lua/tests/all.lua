-- If these failed, a Lua program would read something else than was published, lose what a group shares, hang in a wait
-- that a hook should end, or crash by a mistake.
--
-- The tests of the Lua client, with plain asserts. For Lua 5.4 and LuaJIT, in an empty directory LEAT_DIR:
--
--     LEAT_DIR=$(mktemp -d -p /dev/shm) LUA_CPATH="build/clients/lua/5.4/?.so" lua5.4 clients/lua/tests/all.lua [NAME…]
local leat = require "leat"
local here = arg[0]:match("^(.*/)") or "./"
local harness = dofile(here .. "harness.lua")
local tests, new_topic, is_jit, ffi = harness.tests, harness.new_topic, harness.is_jit, harness.ffi
local meanwhile, seconds = harness.meanwhile, harness.seconds
local equal, fails, raises, raises_code = harness.equal, harness.fails, harness.raises, harness.raises_code
local load_text = loadstring or load -- luacheck: ignore
unpack = unpack or table.unpack -- luacheck: ignore

local function full_topic()
  local topic = new_topic({capacity_bytes = 65536, segment_bytes = 8192})
  local subscriber, publisher = topic:subscriber({from = "beginning", any_thread = true}), topic:publisher()
  local offset, failed
  repeat offset, failed = publisher:publish(("x"):rep(1000), {timeout = 0}) until not offset
  equal("full", failed.name)
  return topic, publisher, subscriber
end

-- ---- Calls --------------------------------------------------------------------------------------

function tests.codes_are_those_of_the_list()
  local listed, count = 0, 0
  for line in io.lines(here .. "../../../spec/errors.csv") do
    local number, name = line:match("^(%d+),([%w_]+),")
    if number then
      listed = listed + 1
      equal(tonumber(number), leat.codes[name])
    end
  end
  for _ in pairs(leat.codes) do count = count + 1 end
  assert(listed > 30)
  equal(listed, count)
end

function tests.topics_are_created_found_and_deleted()
  local topic, name = new_topic({policy = "fail", partitions = 3, timestamps = true, capacity_bytes = 1048576})
  equal(name, topic:name())
  equal(3, topic:partitions())
  assert(topic:max_record_size() > 1000)
  local info = topic:info()
  equal(3, #info.partitions)
  equal(0, info.partitions[1]["end"])
  equal("fail", info.policy)
  assert(topic:info_json():find(name, 1, true))
  local failed = fails("exists", leat.create(name))
  equal(leat.codes.exists, failed.code)
  equal("cannot create topic '" .. name .. "': the topic exists already", tostring(failed))
  fails("not_found", leat.open("nothing", {timeout = 0.01}))
  equal(3, assert(leat.open(name)):partitions())
  equal(3, assert(leat.open_or_create(name)):partitions())
  assert(table.concat(leat.list(), " "):find(name, 1, true))
  fails("unsupported", leat.open("lightq://x"))
  local publisher = topic:publisher()
  fails("busy", leat.delete(name))
  assert(leat.delete(name, {force = true}))
  fails("deleted", publisher:publish("x"))
end

function tests.a_topic_grows_and_shrinks()
  local topic = new_topic({policy = "grow", capacity_bytes = 65536, segment_bytes = 8192, max_capacity_bytes = 1048576})
  assert(topic:set_max_capacity(524288))
  assert(topic:shrink() >= 0)
  fails("needs_durable", topic:repair(0))
  fails("needs_growing", new_topic():set_max_capacity(1))
end

function tests.a_record_keeps_its_parts()
  local topic = new_topic({timestamps = true})
  local publisher, subscriber = topic:publisher(), topic:subscriber({from = "beginning"})
  equal(0, publisher:publish("\255\0x", {key = "", headers = {{"name", "value"}, {"name", "\0"}}}))
  equal(1, publisher:publish("", {headers = {h = "v"}, timeout = 1}))
  local first, second = unpack(subscriber:poll()) -- luacheck: ignore
  equal("\255\0x", first.value)
  equal("", first.key)
  equal("name", first.headers[1][1])
  equal("\0", first.headers[2][2])
  assert(math.abs(first.timestamp_ms - os.time() * 1000) < 10000)
  equal(nil, first.gap)
  equal(0, first.partition)
  equal("", second.value)
  equal(nil, second.key)
  equal("v", second.headers[1][2])
  equal(1, second.offset)
  equal(0, #subscriber:poll(5))
  equal(2, subscriber:offset())
end

function tests.a_batch_is_published_whole()
  local topic = new_topic()
  local publisher, subscriber = topic:publisher(), topic:subscriber({from = "beginning"})
  equal(0, publisher:publish_batch({"a", "b", "c"}))
  equal(3, publisher:publish_batch({{value = "d", key = "k", headers = {{"h", "v"}}}, "e"}, {timeout = 1}))
  local records = subscriber:receive_batch(10, 1)
  equal(5, #records)
  equal("k", records[4].key)
  equal("v", records[4].headers[1][2])
  equal("e", records[5].value)
  fails("invalid_argument", publisher:publish_batch({}))
  local many = {}
  for i = 1, 1000 do many[i] = tostring(i) end
  equal(5, publisher:publish_batch(many))
  equal(1000, #subscriber:receive_batch(2000, 1))
end

function tests.values_are_read_without_tables()
  local topic = new_topic()
  local publisher, subscriber = topic:publisher(), topic:subscriber({from = "beginning"})
  equal(0, #subscriber:read_values())
  equal(0, #subscriber:read_values(5, nil))
  publisher:publish("a")
  publisher:claim(1):abort()
  publisher:publish("b")
  local values = subscriber:read_values(10, 1)
  equal("a", values[1])
  equal("aborted", values[2].reason)
  equal("b", values[3])
end

function tests.options_of_publishers_and_subscribers()
  local topic = new_topic({partitions = 4})
  local publisher = topic:publisher({partition = 2})
  equal(2, publisher:partition())
  equal(topic:max_record_size(), publisher:max_record_size())
  publisher:publish("x")
  publisher:publish("y", {partition = 3})
  equal("x", topic:subscriber({from = {offset = 0}, partition = 2}):receive(1).value)
  equal("y", topic:subscriber({from = {last = 1}, partition = 3}):receive(1).value)
  fails("needs_timestamps", topic:subscriber({from = {time = 5}}))
  fails("busy", topic:publisher({exclusive = true}))
  fails("needs_durable", topic:publisher({acknowledge = "durable"}))
  equal(true, topic:subscriber({gating = false}):is_lossy())
  equal(false, topic:subscriber({spin = 0, patience = 0}):is_lossy())
end

function tests.a_claim_commits_what_was_written()
  local topic = new_topic()
  local publisher, subscriber = topic:publisher(), topic:subscriber({from = "beginning"})
  equal(0, publisher:claim(10, function(claim) claim:write("ab"):write("cd") end))
  equal(1, publisher:claim(10, function(claim) claim:write("x", 3) end))
  equal(2, publisher:claim(4, function(claim) assert(claim:commit(2)) end))
  local claim = publisher:claim(5, nil, 1)
  equal(5, claim:size())
  equal(3, claim:offset())
  fails("busy", publisher:publish("x"))
  raises("invalid argument", claim.write, claim, "123456")
  raises("invalid argument", claim.write, claim, "x", 5)
  fails("invalid_argument", claim:commit(6))
  assert(claim:abort())
  fails("not_in_flight", claim:commit())
  raises_code("not_in_flight", claim.write, claim, "x")
  fails("not_in_flight", claim:abort())
  equal("abcd", subscriber:receive(1).value)
  equal("\0\0\0x", subscriber:receive(1).value)
  equal("\0\0", subscriber:receive(1).value)
  local gap = subscriber:receive(1)
  equal(true, gap.gap)
  equal("aborted", gap.reason)
  equal(3, gap.offset)
  equal(1, gap.count)
end

function tests.a_claim_that_is_left_is_aborted()
  local topic = new_topic()
  local publisher, subscriber = topic:publisher(), topic:subscriber({from = "beginning"})
  raises("left", function() publisher:claim(10, function() error("left") end) end)
  raises("invalid argument", function() publisher:claim(1, function(claim) claim:write("ab") end) end)
  publisher:claim(5) -- Dropped.
  collectgarbage()
  equal(3, publisher:publish("after"))
  local entries = subscriber:receive_batch(4, 1)
  equal("aborted", entries[1].reason)
  equal("after", entries[#entries].value)
  equal(4, publisher:claim(5, function(claim) return claim:commit() and publisher:close() end))
  local other = topic:publisher()
  raises("the publisher is closed", other.claim, other, 5, function() other:close() end)
end

function tests.what_ends_a_claim_within_its_function()
  local topic = new_topic()
  local publisher, subscriber = topic:publisher(), topic:subscriber({from = "beginning"})
  raises_code("not_in_flight", function()
    publisher:claim(5, function(claim)
      assert(claim:write("ab"):commit())
      claim:write("cd")
    end)
  end)
  equal(1, select("#", publisher:claim(5, function(claim) claim:write("ab"):abort() end)))
  equal(nil, publisher:claim(5, function(claim) claim:write("ab"):abort() end))
  equal(3, publisher:claim(5, function(claim)
    fails("invalid_argument", claim:commit(6))
    claim:write("ef")
  end))
  local entries = subscriber:receive_batch(9, 1)
  equal("ab", entries[1].value)
  equal("ef", entries[#entries].value)
end

function tests.a_view_ends_with_its_function()
  local topic = new_topic()
  local publisher, subscriber = topic:publisher(), topic:subscriber({from = "beginning"})
  publisher:publish("hello", {key = "k"})
  local kept
  local first, second = subscriber:view(function(batch)
    kept = batch[1]
    equal("hello", kept:value())
    equal("ell", kept:sub(2, 4))
    equal("lo", kept:sub(-2))
    equal("", kept:sub(4, 3))
    equal("hello", kept:sub(-99, 99))
    equal(104, kept:byte())
    equal(111, kept:byte(-1))
    equal(nil, kept:byte(6))
    equal(5, kept:size())
    equal("k", kept:record().key)
    raises("has not ended", subscriber.poll, subscriber)
    return 1, 2
  end, 10, 1)
  equal(3, first + second)
  raises("the batch has ended", kept.value, kept)
  equal(0, #subscriber:poll())
  publisher:publish("x")
  raises("inside", subscriber.view, subscriber, function() error("inside") end)
  publisher:publish("y")
  subscriber:view(function(batch)
    kept = batch[1]
    subscriber:close()
    raises("the batch has ended", kept.value, kept)
  end)
  subscriber = nil -- luacheck: ignore
  collectgarbage()
  raises("the batch has ended", kept.size, kept)
end

function tests.durable_topics()
  local topic = new_topic({durable = "os", capacity_bytes = 1048576, segment_bytes = 131072})
  local publisher = topic:publisher({acknowledge = "durable"})
  fails("not_found", publisher:last_offset())
  equal(0, publisher:publish("x"))
  equal(1, publisher:publish_batch({"a", "b"}))
  assert(publisher:flush(10))
  assert(publisher:request_sync())
  equal(3, publisher:durable_offset())
  equal(2, publisher:last_offset())
  fails("needs_durable", new_topic():publisher():flush())
end

function tests.groups_share_records()
  local topic, name = new_topic()
  local group = topic:group("workers", {from = "beginning", lease = 60, max_deliveries = 5, in_flight = 10})
  equal(true, group:was_created())
  equal(false, topic:group("workers"):was_created())
  equal("workers", topic:group_names()[1])
  equal("workers", topic:find_group("workers"):name())
  fails("not_found", topic:find_group("others"))
  equal(name .. ".workers.dead", group:dead_letter_topic())
  topic:publisher():publish_batch({"a", "b", "c", "d", "e", "f"})
  local member = group:join({name = "one"})
  local first = member:receive(5)
  equal("a", first.value)
  equal(1, first.deliveries)
  equal(1, member:acknowledge(first))
  fails("not_in_flight", member:acknowledge(first))
  local rest = member:receive_batch(5, 5)
  equal(5, member:in_flight())
  local info = group:info()
  equal("one", info.members[1].name)
  equal(6, info.offsets[1])
  equal(60, info.lease)
  equal(2, member:acknowledge_up_to(rest[2]))
  equal(1, member:acknowledge({rest[2], rest[3]}))
  equal(0, member:acknowledge({}))
  assert(member:requeue(rest[4], 0))
  local again = member:receive(5)
  equal("e", again.value)
  equal(2, again.deliveries)
  local other = group:join()
  fails("not_in_flight", other:acknowledge(again))
  fails("not_in_flight", other:acknowledge({again}))
  equal(2, member:acknowledge_all())
  fails("timeout", member:receive(0))
  assert(group:seek({offset = 5}))
  equal(5, group:position())
  assert(group:released() >= 5)
  fails("busy", topic:delete_group("workers"))
  assert(topic:delete_group("workers", {force = true}))
  fails("closed", member:receive(1))
end

function tests.wait_any_names_the_one_that_has_something()
  local one, other = new_topic(), new_topic()
  local first, second = one:subscriber(), other:subscriber()
  fails("timeout", leat.wait_any({first, second}, 0.01))
  other:publisher():publish("x")
  equal(2, leat.wait_any({first, second}, 5))
  assert(second:wait(5))
  assert(second:wait_fd() > 0)
  equal(1, #second:poll())
end

function tests.deadlines()
  local subscriber = new_topic():subscriber()
  for _, timeout in ipairs({0, 0.03, 0.12}) do
    local started = seconds()
    fails("timeout", subscriber:receive(timeout))
    local took = seconds() - started
    assert(took >= timeout - 0.02 and took < timeout + 1, took)
  end
end

-- ---- Hooks --------------------------------------------------------------------------------------

function tests.a_hook_stops_a_wait()
  local topic, publisher, subscriber = full_topic()
  fails("timeout", publisher:publish(("x"):rep(1000), {timeout = 0.02}))
  fails("stopped", meanwhile(function() publisher:stop() end, function() return publisher:publish(("x"):rep(3000)) end))
  assert(publisher:is_stopped())
  assert(publisher:resume())
  fails("full", publisher:claim(3000, nil, 0))
  while #subscriber:poll() > 0 do end
  local count = 0
  meanwhile(function() subscriber:stop() end, function()
    for _ in subscriber:records() do count = count + 1 end
  end)
  equal(0, count)
  local member = topic:group("workers"):join()
  fails("stopped", meanwhile(function() member:stop() end, function() return member:receive() end))
end

function tests.a_hook_closes_a_handle_that_waits()
  local topic, publisher = full_topic()
  for _, call in ipairs({function(own) return own:publish(("x"):rep(3000)) end, function(own) return own:claim(3000) end,
                         function(own) return own:publish_batch({("x"):rep(3000), {value = "x"}}) end}) do
    local own = topic:publisher()
    fails("stopped", meanwhile(function() own:close() end, function() return call(own) end))
    equal(true, own:closed())
  end
  assert(not publisher:closed())
  topic = new_topic()
  local subscriber, member = topic:subscriber(), topic:group("workers"):join()
  fails("stopped", meanwhile(function() subscriber:close() end, function() return subscriber:receive() end))
  equal(true, subscriber:closed())
  fails("stopped", meanwhile(function() member:close() end, function() return member:receive() end))
  equal(true, member:closed())
  local one, other = topic:subscriber(), topic:subscriber()
  fails("stopped", meanwhile(function() one:close() end, function() return leat.wait_any({other, one}) end))
  fails("stopped", meanwhile(function() other:close() end, function() return other:view(print) end))
  equal(true, one:closed() and other:closed())
end

function tests.a_hook_cannot_use_what_it_interrupted()
  local topic = new_topic()
  local subscriber = topic:subscriber()
  meanwhile(function()
    raises("the subscriber is in use", subscriber.poll, subscriber)
    topic:publisher():publish("x")
  end, function() equal("x", subscriber:receive().value) end)
end

function tests.a_hook_that_raises_ends_the_wait()
  local topic, publisher, subscriber = full_topic()
  for _, call in ipairs({function() publisher:publish(("x"):rep(3000)) end, function() publisher:claim(3000) end,
                         function() topic:group("g"):join():receive() end,
                         function() leat.open("nothing", {timeout = false}) end}) do
    raises("by a hook", meanwhile, function() error("by a hook") end, call)
  end
  while #subscriber:poll() > 0 do end
  assert(publisher:publish("it is free again"))
end

function tests.what_is_published_stays_when_a_hook_changes_it()
  local _, publisher, subscriber = full_topic()
  local batch = {{value = ("a"):rep(3000), headers = {{"name", "value"}}}}
  local values = {}
  assert(meanwhile(function()
    batch[1].value, batch[1].headers, batch[1] = nil, nil, nil
    collectgarbage()
    for i = 1, 1000 do values[i] = ("b"):rep(3000) .. i end
    for _ = 1, 10 do subscriber:poll() end
  end, function() return publisher:publish_batch(batch) end))
  local last
  repeat
    local more = subscriber:poll()
    last = more[#more] or last
  until #more == 0
  equal(("a"):rep(3000), last.value)
  equal("value", last.headers[1][2])
end

-- ---- Misuse -------------------------------------------------------------------------------------

function tests.use_after_close()
  local topic = new_topic()
  local publisher, subscriber, group = topic:publisher(), topic:subscriber(), topic:group("workers")
  local member = group:join()
  publisher:publish("x")
  local delivery = member:receive(5)
  topic:close()
  topic:close()
  equal(true, topic:closed())
  assert(tostring(topic):find("closed", 1, true))
  for _, call in ipairs({"publisher", "subscriber", "name", "info", "partitions", "shrink", "group_names", "repair"}) do
    raises("the topic is closed", topic[call], topic)
  end
  raises("the topic is closed", topic.group, topic, "x")
  assert(publisher:publish("still")) -- Handles close in any order.
  group:close()
  for _, call in ipairs({"join", "info", "name", "position"}) do raises("the group is closed", group[call], group) end
  local claim = publisher:claim(3)
  publisher:close()
  raises("the publisher is closed", publisher.publish, publisher, "x")
  raises("the publisher is closed", publisher.publish_batch, publisher, {"x"})
  raises("the publisher is closed", publisher.claim, publisher, 1)
  raises("the publisher is closed", publisher.stop, publisher)
  raises("the publisher is closed", claim.write, claim, "x")
  subscriber:close()
  for _, call in ipairs({"poll", "receive", "receive_batch", "wait", "wait_fd", "offset", "is_lossy", "read_values"}) do
    raises("the subscriber is closed", subscriber[call], subscriber)
  end
  raises("the subscriber is closed", leat.wait_any, {subscriber})
  raises("the subscriber is closed", subscriber.view, subscriber, print)
  member:close()
  raises("the member is closed", member.receive, member)
  raises("the member is closed", member.acknowledge, member, delivery)
  raises("the member is closed", member.acknowledge, member, {delivery})
  raises("the member is closed", member.requeue, member, delivery)
  raises("the member is closed", member.acknowledge_all, member)
end

function tests.wrong_types()
  local topic = new_topic()
  local publisher, subscriber, member = topic:publisher(), topic:subscriber(), topic:group("workers"):join()
  for _, wrong in ipairs({1, {}, print, true}) do
    raises("value must be a string", publisher.publish, publisher, wrong)
    raises("must be", leat.create, wrong)
    raises("", publisher.publish_batch, publisher, {wrong})
  end
  raises("key must be a string", publisher.publish, publisher, "x", {key = 1})
  raises("headers must be", publisher.publish, publisher, "x", {headers = 1})
  raises("headers must be", publisher.publish, publisher, "x", {headers = {1}})
  raises("a header's value", publisher.publish, publisher, "x", {headers = {{"a", 1}}})
  raises("a header's value", publisher.publish, publisher, "x", {headers = {a = 1}})
  raises("unknown option 'other'", publisher.publish, publisher, "x", {other = 1})
  raises("options must be", publisher.publish, publisher, "x", 1)
  raises("a batch is a list", publisher.publish_batch, publisher, "x")
  raises("value must be", publisher.publish_batch, publisher, {{key = "x"}})
  raises("unknown option 'other'", publisher.publish_batch, publisher, {{value = "x", other = 1}})
  raises("unknown option 'other'", topic.publisher, topic, {other = 1})
  raises("policy must be one of", leat.create, "x", {policy = "other"})
  raises("partitions must", leat.create, "x", {partitions = -1})
  raises("must be below", leat.create, "x", {partitions = 2 ^ 32})
  raises("timeout must", subscriber.receive, subscriber, -1)
  raises("timeout must", subscriber.receive, subscriber, "1")
  raises("timeout must", subscriber.receive, subscriber, 0 / 0)
  raises("limit must not be 0", subscriber.poll, subscriber, 0)
  raises("limit must be", subscriber.poll, subscriber, 1.5)
  raises("from must", topic.subscriber, topic, {from = {}})
  raises("from must", topic.subscriber, topic, {from = {other = 1}})
  raises("function expected", subscriber.view, subscriber)
  raises("function expected", publisher.claim, publisher, 1, 1)
  raises("methods are called with ':'", publisher.publish, "x")
  raises("methods are called with ':'", publisher.publish, topic, "x")
  raises("methods are called with ':'", subscriber.poll, io.stdout)
  raises("expected a delivery", member.acknowledge, member, {value = "x"})
  raises("leat.token", member.acknowledge, member, {value = "x", token = io.stdout})
  raises("expected a delivery", member.acknowledge, member, {1})
  raises("expected a delivery", member.requeue, member, "x")
  raises("wait_any takes", leat.wait_any, {})
  raises("named twice", leat.wait_any, {subscriber, subscriber})
  raises("expected", leat.wait_any, {1})
  equal(false, getmetatable(topic))
  equal(nil, topic.__gc)
  assert(publisher:publish("All of that left it usable."))
end

-- A string of that size takes seconds to make, so a shorter one is there many times. Where nothing is added up, a size
-- goes to the library as it is. LuaJIT has no strings beyond 2 GiB.
function tests.sizes_over_4_gib()
  local full, waiting, reader = full_topic()
  local publisher = new_topic():publisher()
  local string, strings, headers = ("x"):rep(67108864), {}, {}
  for i = 1, 65 do strings[i], headers[i] = string, {"name", string} end
  for _, one in ipairs({publisher, waiting}) do -- Where there is no room, too: none will do.
    assert(fails("too_large", one:publish(string)).detail > 0)
    fails("too_large", one:publish_batch(strings))
    fails("too_large", one:publish("x", {headers = headers}))
    fails("too_large", one:publish("x", {key = string}))
    fails("too_large", one:publish_batch({"x", {value = "x", headers = headers}}))
    fails("too_large", one:publish_batch({{value = string, key = string, headers = headers}}))
    -- As 32 bits they would be small.
    for _, size in ipairs({2 ^ 32, 2 ^ 32 + 5, 2 ^ 40, 2 ^ 53}) do fails("too_large", one:claim(size)) end
  end
  local claim = publisher:claim(5)
  raises("invalid argument", claim.write, claim, string)
  raises("invalid argument", claim.write, claim, "x", 2 ^ 32)
  raises("invalid argument", claim.write, claim, "x", 2 ^ 32 + 1)
  fails("invalid_argument", claim:commit(2 ^ 32 + 1))
  equal(0, claim:write("abc"):commit())
  assert(#reader:poll(2 ^ 32 + 1) > 1)
  assert(full:subscriber({from = {last = 2 ^ 32 + 1}}))
end

function tests.variables_to_be_closed()
  if is_jit then return end
  local topic = new_topic()
  local publisher, claim = load_text([[
    local topic = ...
    local publisher <close> = topic:publisher()
    local claim <close> = publisher:claim(5)
    return publisher, claim
  ]])(topic)
  equal(true, publisher:closed())
  raises("the publisher is closed", claim.write, claim, "x")
end

if is_jit then ffi.cdef "int fork(void); int waitpid(int, int *, int); void _exit(int);" end

-- Fails if `run` does in a child process.
local function in_child(run)
  local status = ffi.new("int[1]")
  local child = ffi.C.fork()
  if child == 0 then ffi.C._exit(pcall(run) and 0 or 1) end
  equal(child, ffi.C.waitpid(child, status, 0))
  equal(0, status[0])
end

function tests.views_and_claims_are_not_the_childs()
  if not is_jit then return end -- Lua has no fork.
  local topic = new_topic()
  local publisher, subscriber = topic:publisher(), topic:subscriber({from = "beginning"})
  publisher:publish("x")
  subscriber:view(function(batch)
    local claim = publisher:claim(1)
    in_child(function()
      raises("the batch belongs to the parent process", batch[1].byte, batch[1])
      raises_code("forked", claim.write, claim, "y")
      fails("forked", subscriber:read_values())
      fails("forked", subscriber:view(function() end))
    end)
    equal(120, batch[1]:byte())
    assert(claim:write("y"):commit())
  end)
  equal("y", subscriber:read_values()[1])
end

function tests.a_child_cannot_use_what_it_inherited()
  if not is_jit then return end -- Lua has no fork.
  local topic, name = new_topic()
  local publisher, subscriber = topic:publisher(), topic:subscriber({from = "beginning"})
  local member = topic:group("workers", {from = "beginning"}):join()
  in_child(function()
    fails("forked", publisher:publish("x"))
    fails("forked", subscriber:poll())
    fails("forked", member:receive())
    fails("forked", topic:publisher())
    publisher:close()
    member:close()
    topic:close()
    subscriber = nil
    collectgarbage()
    assert(assert(leat.open(name)):publisher():publish("child"))
  end)
  equal(1, publisher:publish("parent"))
  equal("child", subscriber:receive(5).value)
  equal("parent", subscriber:receive(5).value)
  equal("child", member:receive(5).value)
end

loadfile(here .. "collector.lua")(harness)
loadfile(here .. "lives.lua")(harness)
loadfile(here .. "waits.lua")(harness)
loadfile(here .. "messages.lua")(harness)
harness.run()
