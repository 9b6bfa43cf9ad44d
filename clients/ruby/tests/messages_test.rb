# frozen_string_literal: true

# If these failed, a user would look for the mistake in the wrong place.

# Errors name the topic, the directory, the option, and what would be right.
class MessagesTest < Tests
  RULE = "a name is 1 to 200 of the characters A-Z a-z 0-9 . _ -"

  def test_errors_name_what_they_are_about
    raises(Leat::InvalidArgument, "cannot create topic 'my orders': #{RULE}") { Leat::Topic.create("my orders") }
    raises(Leat::NotFound, "cannot open topic 'never': no such topic in #{ENV.fetch("LEAT_DIR")} (LEAT_DIR)") do
      Leat::Topic.open("never")
    end
    raises(Leat::NotFound, "cannot delete topic 'x': no directory /nowhere (an option)") do
      Leat::Topic.delete("x", directory: "/nowhere")
    end
    raises(Leat::Error, "cannot make the directory /dev/null/topics (an option)") do
      Leat::Topic.create("x", directory: "/dev/null/topics")
    end
    raises(Leat::Unsupported, "this is the address of a broker") { Leat::Topic.open("lightq://u@h/t") }
    raises(Leat::InvalidArgument, "partitions must be 1 to 1024, not 0") { Leat::Topic.create("x", partitions: 0) }
    raises(Leat::InvalidArgument, "mode must be between") { Leat::Topic.create("x", mode: 0o400) }
    raises(ArgumentError, "policy must be one of :block, :fail") { Leat::Topic.create("x", policy: :never) }
    raises(ArgumentError, "evict_after must be seconds from 0 on, not -1") { Leat::Topic.create("x", evict_after: -1) }
    raises(TypeError, "partitions must be an Integer, not String") { Leat::Topic.create("x", partitions: "2") }
  end

  def test_errors_of_a_topic
    two = topic("two", partitions: 2)
    publisher = two.publisher
    none = "the topic has no partition 7"
    raises(Leat::InvalidArgument, "cannot make a subscriber: #{none}") { two.subscriber(partition: 7) }
    raises(Leat::InvalidArgument, "cannot make a publisher: #{none}") { two.publisher(partition: 7) }
    raises(Leat::InvalidArgument, "cannot publish: #{none}") { publisher.publish("x", partition: 7) }
    raises(Leat::InvalidArgument, none) { publisher.publish_batch(["x"], partition: 7) }
    raises(Leat::InvalidArgument, "a batch has at least one value") { publisher.publish_batch([]) }
    raises(Leat::InvalidArgument, "cannot open group 'my group': #{RULE}") { two.group("my group") }
    raises(Leat::InvalidArgument, "members must be 1 to 255, not 0") { two.group("g", members: 0) }
    raises(Leat::NotFound, "cannot open group 'never': the topic has no group of this name") { two.find_group("never") }
    raises(Leat::NotFound, "cannot delete group 'never'") { two.delete_group("never") }
    raises(ArgumentError, "timeout must be seconds from 0 on, not -1") { two.subscriber.receive(timeout: -1) }
  end
end
