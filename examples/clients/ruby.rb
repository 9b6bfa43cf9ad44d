# Publishes a record and reads the topic back. Beside it: leat sub greetings --from beginning
require "leat"

topic = Leat::Topic.open_or_create("greetings")
topic.publisher { |publisher| publisher.publish("hello from Ruby") }
topic.subscriber(from: :beginning) do |subscriber|
  until (entries = subscriber.poll).empty?
    entries.each { |entry| puts entry.value unless entry.gap? }
  end
end
