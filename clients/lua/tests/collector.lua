-- If these failed, a finalizer that closes or changes what a call is using would crash the program.
-- Finalizers are any code, and run whenever something is made: also within calls of the client.
local harness = ...
local leat = require "leat"
local tests, new_topic, equal, raises = harness.tests, harness.new_topic, harness.equal, harness.raises
local finalized, while_collecting = harness.finalized, harness.while_collecting

function tests.finalizers_run_while_entries_are_made()
  local topic = new_topic()
  local publisher, subscriber = topic:publisher(), topic:subscriber({from = "beginning"})
  while_collecting(function()
    for _ = 1, 200 do
      for _ = 1, 20 do finalized(function() pcall(subscriber.poll, subscriber, 1) end) end
      publisher:publish_batch({("a"):rep(300), ("b"):rep(300), ("c"):rep(300)})
      for _, record in ipairs(subscriber:poll(3)) do equal(300, #record.value) end
    end
  end)
  assert(not subscriber:closed())
end

function tests.a_finalizer_changes_the_headers_that_are_read()
  local publisher = new_topic():publisher()
  local is_changed = 0
  while_collecting(function()
    for _ = 1, 300 do
      local pairs_of, by_name, batch = {{"a", "b"}}, {a = "b"}, {}
      for i = 1, 10 do batch[i] = {value = "x", headers = pairs_of} end
      for _ = 1, 5 do
        finalized(function()
          for i = 2, 60 do pairs_of[i], by_name["n" .. i] = {"n", "v"}, "v" end
        end)
      end
      for _, call in ipairs({function() return publisher:publish("x", {headers = pairs_of}) end,
                             function() return publisher:publish("x", {headers = by_name}) end,
                             function() return publisher:publish_batch(batch) end}) do
        local is_done, failed = pcall(call)
        if not is_done then
          assert(tostring(failed):find("changed meanwhile", 1, true), failed)
          is_changed = is_changed + 1
        end
      end
    end
  end)
  assert(publisher:publish("It is usable."))
  return is_changed
end

function tests.a_finalizer_closes_the_topic_whose_text_is_read()
  while_collecting(function()
    for _ = 1, 20 do
      local topic, name = new_topic({capacity_bytes = 65536, segment_bytes = 8192})
      for i = 1, 20 do assert(topic:group(("g"):rep(40) .. i)) end
      for _ = 1, 4 do finalized(function() topic:close() end) end
      for _, call in ipairs({"info_json", "group_names", "info", "name"}) do
        local is_done, failed = pcall(topic[call], topic)
        assert(is_done or tostring(failed):find("closed", 1, true), failed)
      end
      topic:close()
      leat.delete(name, {force = true})
    end
  end)
end

-- The collector ends what was made last first: what is older still sees it, and may use it.
function tests.a_finalizer_uses_what_was_collected()
  local said = {}
  local function drop()
    local kept = {}
    kept.first = finalized(function()
      said.n = 0
      for text, call in pairs({
        ["expected a leat.subscriber"] = function() return leat.wait_any({kept.subscriber}, 0) end,
        ["expected a leat.subscriber: m"] = function() return kept.subscriber:poll() end,
        ["expected a leat.publisher: m"] = function() return kept.publisher:publish("x") end,
        ["the batch has ended"] = function() return kept.view:value() end,
        ["expected a leat.member: m"] = function() return kept.member:acknowledge(kept.delivery) end,
      }) do
        local is_done, failed = pcall(raises, text, call)
        said[#said + 1] = not is_done and tostring(failed) or nil
        said.n = said.n + 1
      end
      for _, call in ipairs({"write", "commit", "abort", "size", "offset"}) do
        pcall(kept.claim[call], kept.claim, "x")
      end
    end)
    local topic = new_topic()
    kept.publisher, kept.subscriber = topic:publisher(), topic:subscriber({from = "beginning"})
    kept.member = topic:group("g", {from = "beginning"}):join()
    kept.publisher:publish("x")
    kept.delivery = kept.member:receive(5)
    kept.subscriber:view(function(batch) kept.view = batch[1] end, 1, 5)
    kept.claim = kept.publisher:claim(10)
  end
  drop()
  for _ = 1, 3 do collectgarbage() end
  equal(5, said.n)
  equal(nil, said[1])
end
