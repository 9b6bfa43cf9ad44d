-- If these failed, a user would look for the mistake in the wrong place: errors name the topic, the directory, the option,
-- and what would be right.
local harness = ...
local leat = require "leat"
local tests, raises = harness.tests, harness.raises

local function says(wanted, result, failed)
  if result ~= nil then error("no error: " .. wanted, 2) end
  if not tostring(failed):find(wanted, 1, true) then error(("wanted '%s', got '%s'"):format(wanted, tostring(failed)), 2) end
end

function tests.errors_name_what_they_are_about()
  local rule = "a name is 1 to 200 of the characters A-Z a-z 0-9 . _ -"
  says("cannot create topic 'my orders': " .. rule, leat.create("my orders"))
  says("cannot open topic 'never': no such topic in " .. os.getenv("LEAT_DIR") .. " (LEAT_DIR)", leat.open("never"))
  says("cannot delete topic 'x': no directory /nowhere (an option)", leat.delete("x", {directory = "/nowhere"}))
  says("cannot make the directory /dev/null/topics (an option)", leat.create("x", {directory = "/dev/null/topics"}))
  says("this is the address of a broker", leat.open("lightq://u@h/t"))
  says("partitions must be 1 to 1024, not 0", leat.create("x", {partitions = 0}))
  says("mode must be between 0600 and 0666 (octal), not 0400", leat.create("x", {mode = 256}))
  local topic = harness.new_topic({partitions = 2})
  says("cannot make a subscriber: the topic has no partition 7", topic:subscriber({partition = 7}))
  says("cannot make a publisher: the topic has no partition 7", topic:publisher({partition = 7}))
  local publisher = topic:publisher()
  says("cannot publish: the topic has no partition 7", publisher:publish("x", {partition = 7}))
  says("the topic has no partition 7", publisher:publish_batch({"x"}, {partition = 7}))
  says("a batch has at least one value", publisher:publish_batch({}))
  says("cannot open group 'my group': " .. rule, topic:group("my group"))
  says("members must be 1 to 255, not 0", topic:group("g", {members = 0}))
  says("cannot open group 'never': the topic has no group of this name", topic:find_group("never"))
  says("cannot delete group 'never'", topic:delete_group("never"))
  raises("policy must be one of block fail overwrite grow, not never", leat.create, "x", {policy = "never"})
  raises("evict_after must be seconds from 0 on", leat.create, "x", {evict_after = -1})
  raises("partitions must be a number, not a string", leat.create, "x", {partitions = "2"})
end
