-- Publishes a record and reads the topic back. Beside it: leat sub greetings --from beginning
local leat = require "leat"

local topic = assert(leat.open_or_create("greetings"))
local publisher = assert(topic:publisher())
assert(publisher:publish("hello from Lua"))
local subscriber = assert(topic:subscriber({from = "beginning"}))
repeat
  local entries = assert(subscriber:poll())
  for _, entry in ipairs(entries) do
    if not entry.gap then print(entry.value) end
  end
until #entries == 0
