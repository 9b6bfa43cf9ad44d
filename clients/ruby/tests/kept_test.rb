# frozen_string_literal: true

# If these failed, Timeout, Thread#raise or Ctrl-C would cost the record that came just then; or a program would hang in a
# publish that only its own thread could end.

require "open3"

# What a call has taken as an interrupt comes is returned by the next call.
class KeptTest < Tests
  ROUNDS = 30

  # Publishes while the block waits, and interrupts it before it can have seen that: this thread has the GVL.
  # What the block returned; nil: it was interrupted.
  def interrupted(publisher, values)
    got = nil
    waiter = Thread.current
    sender = Thread.new do
      sleep(0.002)
      publisher.publish_batch(values)
      waiter.raise(Interrupt)
    end
    begin
      got = yield
      sleep(10) # The interrupt came after the call.
    rescue Interrupt
      nil
    end
    sender.join
    got
  end

  def loses_nothing(publisher, reader, call)
    wanted = []
    got = []
    ended = 0
    ROUNDS.times do |i|
      values = ["a#{i}", "b#{i}"]
      wanted.concat(values)
      returned = interrupted(publisher, values) { call.call(reader) }
      ended += 1 unless returned
      got.concat(returned || [])
      got.concat(call.call(reader)) while got.size < wanted.size
    end
    equal(wanted, got)
    check(ended.positive?, "no call was interrupted")
  end

  def test_nothing_is_lost
    publisher = topic.publisher
    calls = [->(one) { [one.receive(timeout: 5).value] }, ->(one) { one.receive_batch.map(&:value) },
             ->(one) { [one.first.value] }]
    values = ->(one) { one.read_values(timeout: 5) }
    [*calls, values].each { |call| loses_nothing(publisher, topic.subscriber, call) }
    calls.each_with_index { |call, i| loses_nothing(publisher, topic.group("workers-#{i}").join, call) }
  end

  # Whether it has: the interrupt may also have come before it took the record. Otherwise it is done with all.
  def kept?(reader)
    if reader.is_a?(Leat::Member)
      return true if reader.in_flight.positive?

      reader.acknowledge(reader.receive_batch(timeout: 5))
    else
      reader.view(timeout: 5) { nil }
    end
    false
  rescue Leat::Busy
    true
  end

  # Interrupts the reader until it keeps a record; its value.
  def kept(publisher, reader)
    100.times do |i|
      got = interrupted(publisher, ["kept #{i}"]) { reader.receive }
      return "kept #{i}" if got.nil? && kept?(reader)

      reader.acknowledge(got) if got && reader.is_a?(Leat::Member)
    end
    raise Failed, "no record came with an interrupt"
  end

  def test_what_is_kept_counts_everywhere
    publisher = topic.publisher
    subscriber = topic.subscriber
    value = kept(publisher, subscriber)
    subscriber.wait(timeout: 0)
    equal(1, Leat.wait_any([topic.subscriber, subscriber], timeout: 0))
    offset = subscriber.offset
    raises(Leat::Busy, "receive") { subscriber.view { nil } }
    publisher.publish("later")
    equal([value], subscriber.poll.map(&:value))
    equal(offset + 1, subscriber.offset)
    equal("later", subscriber.receive(timeout: 0).value)
    kept(publisher, subscriber)
    subscriber.close
    raises(Leat::ClosedError) { subscriber.receive }
  end

  def test_what_a_member_kept_is_not_acknowledged_unseen
    member = topic.group("workers").join
    value = kept(topic.publisher, member)
    member.wait(timeout: 0)
    member.acknowledge_all
    again = member.receive(timeout: 5)
    equal([value, 2], [again.value, again.deliveries])
    equal(1, member.acknowledge(again))
    equal(0, member.in_flight)
  end

  def test_stop_ends_a_publisher_that_waits_for_its_own_thread
    full = topic("full", capacity_bytes: 1 << 16)
    keeps = full.subscriber
    keeps.poll
    publisher = full.publisher
    raises(Leat::Full) { loop { publisher.publish("x" * 1000, timeout: 0) } }
    [[-> {}, 0.02, Leat::Timeout], [-> { publisher.stop }, nil, Leat::Stopped]].each do |act, timeout, error|
      other = Thread.new { sleep(0.05) && act.call }
      raises(error) { publisher.publish("x" * 1000, timeout: timeout) }
      other.join
    end
  end

  ONLY_THREAD = <<~RUBY
    require "leat"
    topic = Leat::Topic.create("small", capacity_bytes: 1 << 16)
    publisher = topic.publisher
    fails = lambda do |&call|
      loop { call.call("x" * 1000) }
    rescue Leat::WouldDeadlock
      puts "would deadlock"
    end
    keeps = topic.subscriber
    fails.call { |value| publisher.publish(value) } # Nobody has read yet: after a second.
    keeps.poll
    fails.call { |value| publisher.publish_batch([value] * 2) }
    fails.call { |value| publisher.claim(1000) { |claim| claim << value } }
    reads = Thread.new { sleep(0.1); keeps.poll(1000) && keeps.poll(1000) }
    publisher.publish("x" * 1000)
    puts "published"
  RUBY

  def test_a_publisher_that_only_its_own_thread_could_make_room_for
    said, = Open3.capture2e(RbConfig.ruby, *$LOAD_PATH.first(3).map { |path| "-I#{path}" }, "-e", ONLY_THREAD)
    equal("#{"would deadlock\n" * 3}published\n", said)
  end
end
