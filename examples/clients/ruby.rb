# Publishes a record and reads the topic back. Beside it: leat sub greetings --from beginning
require "leat"

topic = Leat::Topic.open_or_create("greetings")
offset = topic.publisher { |publisher| publisher.publish("hello from Ruby") }
topic.subscriber(from: :beginning) do |subscriber|
  subscriber.receive_batch(offset + 1).each { |entry| puts entry.gap? ? entry.inspect : entry.value }
end
