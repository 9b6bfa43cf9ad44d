-- Publishes a record and reads the topic back. Beside it: leat sub greetings --from beginning
local leat = require "leat"

local topic = assert(leat.open_or_create("greetings"))
local publisher = assert(topic:publisher())
local offset = assert(publisher:publish("hello from Lua"))
local subscriber = assert(topic:subscriber({from = "beginning"}))
for _, entry in ipairs(assert(subscriber:receive_batch(offset + 1))) do
  print(entry.gap and "gap: " .. entry.reason or entry.value)
end
