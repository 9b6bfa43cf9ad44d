# frozen_string_literal: true

# If these failed, a Ruby program would read something else than was published, lose what a group shares, miss topics or
# errors by their names, or grow while it runs.

require "fiddle"

# Each call does what C++ does.
class CallsTest < Tests
  def test_topics_are_created_found_and_deleted
    equal([], Leat::Topic.list)
    made = Leat::Topic.create("b", policy: :fail, partitions: 3, capacity_bytes: 1 << 20, timestamps: true)
    equal("b", made.name)
    equal(3, made.partitions)
    check(made.max_record_size > 1000)
    equal(3, made.info["partitions"].size)
    raises(Leat::Exists) { Leat::Topic.create("b") }
    raises(Leat::NotFound, "no such topic") { Leat::Topic.open("a", timeout: 0.01) }
    Leat::Topic.open_or_create("a").close
    equal(%w[a b], Leat::Topic.list)
    equal(:done, Leat::Topic.open("b") { |topic| topic.closed? ? :closed : :done })
    publisher = made.publisher
    raises(Leat::Busy) { Leat::Topic.delete("b") }
    Leat::Topic.delete("b", force: true)
    raises(Leat::Deleted) { publisher.publish("x") }
    equal(%w[a], Leat::Topic.list(directory: ENV["LEAT_DIR"]))
  end

  def test_open_waits_until_the_topic_is_created
    waiting = elsewhere { Leat::Topic.open("later", timeout: 10).name }
    topic("later")
    equal("later", waiting.value)
  end

  def test_a_topic_grows_and_shrinks
    grown = topic(policy: :grow, capacity_bytes: 1 << 16, segment_bytes: 1 << 13, max_capacity_bytes: 1 << 20)
    grown.set_max_capacity(1 << 19)
    check(grown.shrink >= 0)
    raises(Leat::NeedsDurable) { grown.repair(timeout: 0) }
    raises(Leat::NeedsGrowing) { topic("other").set_max_capacity(1) }
  end

  def test_a_record_keeps_its_parts
    publisher = topic(timestamps: true).publisher
    subscriber = topic.subscriber(from: :beginning)
    equal(0, publisher.publish("\xFF\0ü", key: "", headers: { "name" => "value" }))
    equal(1, publisher.publish("", headers: [%W[a b], ["a", "\xFE".b]], timeout: 1))
    first, second = subscriber.poll
    equal("\xFF\0ü".b, first.value)
    equal([Encoding::BINARY, true], [first.value.encoding, first.value.frozen?])
    equal(["", [%w[name value]]], [first.key, first.headers])
    equal([0, 0, false], [first.offset, first.partition, first.gap?])
    check((first.timestamp_ms - (Time.now.to_f * 1000)).abs < 10_000)
    equal(["", nil, [["a", "b"], ["a", "\xFE".b]]], [second.value, second.key, second.headers])
    check(second.inspect.include?("offset=1"))
    equal([], subscriber.poll(5))
    equal(2, subscriber.offset)
  end

  def test_a_batch_is_published_whole
    publisher = topic.publisher
    subscriber = topic.subscriber(from: :beginning)
    equal(0, publisher.publish_batch(%w[a b c]))
    equal(3, publisher.publish_batch([{ value: "d", key: "k", headers: { "h" => "v" } }, "e"], timeout: 1))
    records = subscriber.receive_batch(10, timeout: 1)
    equal(%w[a b c d e], records.map(&:value))
    equal(["k", [%w[h v]]], [records[3].key, records[3].headers])
    raises(Leat::InvalidArgument) { publisher.publish_batch([]) }
    equal(5, publisher.publish_batch((1..1000).map(&:to_s)))
    equal(1000, subscriber.receive_batch(2000, timeout: 1).size)
  end

  def test_values_are_read_without_records
    publisher = topic.publisher
    subscriber = topic.subscriber(from: :beginning)
    equal([], subscriber.read_values)
    publisher.publish("\xFF", key: "k")
    publisher.claim(1).abort
    publisher.publish("")
    first, gap, last = subscriber.read_values(10, timeout: 1)
    equal(["\xFF".b, Encoding::BINARY, true], [first, first.encoding, first.frozen?])
    equal([1, :aborted, ""], [gap.offset, gap.reason, last])
    publisher.publish_batch((1..1000).map(&:to_s))
    equal(%w[1 2], subscriber.read_values(2))
    equal((3..1000).map(&:to_s), subscriber.read_values(2000))
    raises(Leat::Timeout) { subscriber.read_values(timeout: 0.01) }
    equal([], subscriber.read_values(timeout: 0))
  end

  def test_options_of_publishers_and_subscribers
    topic(partitions: 4)
    publisher = topic.publisher(partition: 2)
    equal(2, publisher.partition)
    equal(topic.max_record_size, publisher.max_record_size)
    publisher.publish("x")
    publisher.publish("y", partition: 3)
    equal("x", topic.subscriber(from: { offset: 0 }, partition: 2).receive(timeout: 1).value)
    equal("y", topic.subscriber(from: { last: 1 }, partition: 3).receive(timeout: 1).value)
    raises(Leat::NeedsTimestamps) { topic.subscriber(from: { time: Time.now }) }
    raises(Leat::Busy) { topic.publisher(exclusive: true) }
    raises(Leat::NeedsDurable) { topic.publisher(acknowledge: :durable) }
    check(topic.subscriber(gating: false).lossy?)
    check(!topic.subscriber(spin: 0, patience: 0).lossy?)
  end

  def test_a_claim_commits_what_was_written
    publisher = topic.publisher
    subscriber = topic.subscriber(from: :beginning)
    equal(0, publisher.claim(10) { |claim| claim << "ab" << "cd" })
    equal(1, publisher.claim(10) { |claim| claim.write("x", at: 3) })
    equal(2, publisher.claim(4) { |claim| claim.commit(2) })
    claim = publisher.claim(5, timeout: 1)
    equal([5, 3], [claim.size, claim.offset])
    claim.abort
    equal(["abcd", "\0\0\0x", "\0\0"], subscriber.poll(3).map(&:value))
    gap = subscriber.receive(timeout: 1)
    equal([true, 3, 1, :aborted, 0], [gap.gap?, gap.offset, gap.count, gap.reason, gap.partition])
    check(gap.inspect.include?("reason=aborted"))
  end

  def test_a_claim_that_is_left_is_aborted
    publisher = topic.publisher
    subscriber = topic.subscriber(from: :beginning)
    raises(KeyError) { publisher.claim(10) { raise KeyError } }
    publisher.claim(10) { |_claim| break }
    catch(:out) { publisher.claim(10) { throw :out } }
    publisher.publish("after")
    equal([3, "after"], [subscriber.poll(1)[0].count + subscriber.poll(2).sum { |one| one.gap? ? one.count : 0 },
                         publisher.then { topic.subscriber(from: { last: 1 }).poll[0].value }])
  end

  def test_a_view_ends_with_its_block
    publisher = topic.publisher
    subscriber = topic.subscriber(from: :beginning)
    publisher.publish("hello", key: "k", headers: { "h" => "v" })
    kept = nil
    returned = subscriber.view(timeout: 1) do |batch|
      kept = batch[0]
      equal(["hello", 5, "k", [%w[h v]]], [kept.value, kept.size, kept.key, kept.headers])
      equal(["ell", "o", nil, 104, nil], [kept.byteslice(1, 3), kept.byteslice(4, 9), kept.byteslice(6, 1),
                                          kept.getbyte(0), kept.getbyte(5)])
      equal([true, false, 0, 0, nil, false], [kept.value?("hello"), kept.value?("x"), kept.offset, kept.partition,
                                              kept.timestamp_ms, kept.gap?])
      raises(Leat::Busy, "has not ended") { subscriber.poll }
      :result
    end
    equal(:result, returned)
    raises(Leat::ClosedError, "the batch has ended") { kept.value }
    equal([], subscriber.poll)
    publisher.publish("x")
    subscriber.view { |batch| (kept = batch[0]) && subscriber.close }
    raises(Leat::ClosedError) { kept.size }
  end

  def test_durable_topics
    topic(durable: :os, capacity_bytes: 1 << 20, segment_bytes: 1 << 17)
    publisher = topic.publisher(acknowledge: :durable)
    equal(nil, publisher.last_offset)
    equal(0, publisher.publish("x"))
    equal(1, publisher.publish_batch(%w[a b]))
    publisher.flush(timeout: 10)
    publisher.request_sync
    equal([3, 3, 2], [publisher.durable_offset, publisher.durable_offset(partition: 0), publisher.last_offset])
    raises(Leat::NeedsDurable) { topic("other").publisher.flush }
  end

  def test_groups_share_records
    group = topic.group("workers", from: :beginning, lease: 60, max_deliveries: 5, in_flight: 10)
    check(group.created? && !topic.group("workers").created?)
    equal([%w[workers], "workers"], [topic.group_names, topic.find_group("workers").name])
    equal("topic.workers.dead", group.dead_letter_topic)
    publisher = topic.publisher
    publisher.publish_batch(%w[a b c d e f])
    member = group.join(name: "one")
    first = member.receive(timeout: 5)
    equal([["a", 1], "Leat::Delivery"], [[first.value, first.deliveries], first.class.name])
    equal(1, member.acknowledge(first))
    raises(Leat::NotInFlight) { member.acknowledge(first) }
    rest = member.receive_batch(5, timeout: 5)
    equal(5, member.in_flight)
    info = group.info
    equal([5, 60.0, ["one"], [6]], [info["in_flight"], info["lease"], info["members"].map { |one| one["name"] },
                                    info["offsets"]])
    equal(2, member.acknowledge_up_to(rest[1]))
    equal(1, member.acknowledge(rest[1..2]))
    member.requeue(rest[3], delay: 0)
    equal(["e", 2], member.receive(timeout: 5).then { |again| [again.value, again.deliveries] })
    equal(2, member.acknowledge_all)
    raises(Leat::Timeout) { member.receive(timeout: 0) }
    group.seek({ offset: 5 })
    equal([5, true], [group.position, group.released >= 5])
    raises(Leat::Busy) { topic.delete_group("workers") }
    topic.delete_group("workers", force: true)
    raises(Leat::Closed) { member.receive(timeout: 1) }
  end

  def test_another_members_delivery_is_not_in_flight
    topic.publisher.publish_batch(%w[a b])
    group = topic.group("workers", from: :beginning)
    group = topic.group("workers").tap { |same| same.seek(:beginning) }
    one = group.join
    other = group.join
    delivery = one.receive(timeout: 5)
    raises(Leat::NotInFlight) { other.acknowledge(delivery) }
    raises(Leat::NotInFlight) { other.acknowledge([delivery]) }
    equal(1, one.acknowledge([delivery]))
  end

  def test_each_ends_when_waits_are_stopped
    publisher = topic.publisher
    subscriber = topic.subscriber(from: :beginning)
    publisher.publish_batch(%w[a b c])
    equal(%w[a b], subscriber.first(2).map(&:value))
    reading = elsewhere { subscriber.map(&:value) }
    subscriber.stop
    equal(%w[c], reading.value)
    check(subscriber.stopped?)
    raises(Leat::Stopped) { subscriber.receive }
    subscriber.resume
    member = topic.group("workers", from: :beginning).join
    equal(%w[a b c], member.each.first(3).map(&:value))
  end

  def test_errors_have_a_code_a_name_and_a_detail
    error = raises(Leat::TooLarge, "larger") { topic.publisher.publish("x" * (8 << 20)) }
    equal([10, "too_large"], [error.code, error.name])
    check(error.detail.positive? && error.is_a?(Leat::Error))
    equal([10, "too_large"], [Leat::TooLarge::CODE, Leat::TooLarge::NAME])
  end

  def test_every_error_of_the_list_has_its_class
    listed = File.readlines("#{__dir__}/../../../spec/errors.csv").drop(2).map { |line| line.split(",").first(2) }
    kinds = listed.map { |_, name| Leat.const_get(name.split("_").map(&:capitalize).join) }
    check(kinds.size > 30 && kinds.all? { |kind| kind < Leat::Error })
    equal(listed, kinds.map { |kind| [kind::CODE.to_s, kind::NAME] })
    classes = Leat.constants.map { |name| Leat.const_get(name) }.grep(Class)
    equal(kinds.size, classes.count { |kind| kind < Leat::Error })
  end

  # 10,000 handles, of each kind as many.
  def test_memory_threads_and_descriptors_do_not_grow
    topic.group("workers").close
    figures = lambda do
      status = File.read("/proc/self/status")
      [status[/VmRSS:\s+(\d+)/, 1].to_i, status[/Threads:\s+(\d+)/, 1].to_i, Dir.children("/proc/self/fd").size]
    end
    once = lambda do |_round|
      Leat::Topic.open("topic") do |opened|
        opened.publisher { |publisher| publisher.claim(10) { |claim| claim << "x" } }
        opened.subscriber(from: :beginning) { |subscriber| subscriber.poll }
        opened.find_group("workers") { |group| group.join.close }
      end
    end
    GC.start # Of what other tests dropped.
    200.times(&once)
    before = figures.call
    rounds = 10_000 / 6 / 4 + 1
    parts = Array.new(4) do
      allocated = allocated_bytes
      rounds.times(&once)
      (allocated_bytes - allocated) / rounds
    end
    after = figures.call
    check(after[0] < before[0] + 4096, "#{before} #{after}")
    check(after[1] <= before[1] && after[2] <= before[2], "#{before} #{after}")
    # What is leaked grows in each part; what is kept for later use does not.
    check(parts.min < 100, "#{parts} bytes a round")
  end

  # What malloc gave out: exact, where pages that are resident are not.
  def allocated_bytes
    GC.start
    path = File.join(ENV["LEAT_DIR"], "malloc.xml")
    call = lambda do |name, types, *arguments|
      Fiddle::Function.new(Fiddle::Handle::DEFAULT[name], types, Fiddle::TYPE_VOIDP).call(*arguments).to_i
    end
    file = call.call("fopen", [Fiddle::TYPE_VOIDP] * 2, path, "w")
    call.call("malloc_info", [Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP], 0, file)
    call.call("fclose", [Fiddle::TYPE_VOIDP], file)
    all = File.read(path).rpartition("</heap>").last
    size = ->(name) { Integer(all[/"#{name}"[^>]* size="(\d+)"/, 1]) }
    size.call("current") + size.call("mmap") - size.call("fast") - size.call("rest")
  end

  def test_handles_are_closed_by_a_collector_on_another_thread
    participants = -> { topic.info["participants"].size }
    before = participants.call
    20.times { [topic.subscriber, topic.publisher] }
    check(participants.call > before)
    eventually { Thread.new { GC.start }.join && participants.call <= before + 2 } # The stack may still name the last.
  end

  def test_dropped_handles_are_closed_by_the_collector
    topic.publisher.publish("x")
    200.times do
      # Beyond the participant slots of the topic, if they were not closed.
      8.times { topic.subscriber }
      GC.start
    end
    claimed = topic.publisher
    Thread.new { claimed.claim(10) }.join
    eventually do
      GC.start
      claimed.publish("next") rescue nil # rubocop:disable Style/RescueModifier
    end
  end
end
