# frozen_string_literal: true

# If these failed, a mistake in Ruby would crash the interpreter, publish bytes that change meanwhile, or let a forked
# child harm its parent.

require "fiddle"

# What a program may do wrong gives an exception, never a crash.
class MisuseTest < Tests
  def test_use_after_close
    publisher = topic.publisher
    subscriber = topic.subscriber
    group = topic.group("workers")
    member = group.join
    publisher.publish("x")
    delivery = member.receive(timeout: 5)
    topic.close
    topic.close
    check(topic.closed?)
    %i[publisher subscriber info name partitions shrink group_names].each do |call|
      raises(Leat::ClosedError, "the topic is closed") { topic.public_send(call) }
    end
    publisher.publish("still") # Handles close in any order.
    group.close
    %i[join info name position dead_letter_topic].each { |call| raises(IOError) { group.public_send(call) } }
    claim = publisher.claim(3)
    publisher.close
    raises(Leat::ClosedError, "the publisher is closed") { publisher.publish("x") }
    [-> { publisher.publish_batch(["x"]) }, -> { publisher.claim(1) }, -> { publisher.flush }, -> { publisher.stop },
     -> { publisher.publish("x", key: "k") }, -> { claim << "x" }, -> { claim.commit }].each do |call|
      raises(Leat::ClosedError, &call)
    end
    subscriber.close
    %i[poll receive receive_batch read_values wait wait_fd to_io offset lossy? stop each].each do |call|
      raises(Leat::ClosedError, "the subscriber is closed") { subscriber.public_send(call) { nil } }
    end
    raises(Leat::ClosedError) { Leat.wait_any([subscriber]) }
    member.close
    [-> { member.receive }, -> { member.acknowledge(delivery) }, -> { member.acknowledge_all },
     -> { member.requeue(delivery) }, -> { member.acknowledge([delivery]) }, -> { member.in_flight }].each do |call|
      raises(Leat::ClosedError, "the member is closed", &call)
    end
  end

  def test_wrong_types
    publisher = topic.publisher
    subscriber = topic.subscriber
    member = topic.group("workers").join
    types = [-> { publisher.publish(1) }, -> { publisher.publish(nil) }, -> { publisher.publish("x", key: 1) },
             -> { publisher.publish("x", headers: 1) }, -> { publisher.publish("x", headers: [1]) },
             -> { publisher.publish("x", headers: { "a" => 1 }) }, -> { publisher.publish_batch("x") },
             -> { publisher.publish_batch([1]) }, -> { publisher.publish_batch({ value: "x" }) },
             -> { publisher.publish_batch([{ value: 1 }]) }, -> { publisher.publish("x", timeout: "1") },
             -> { subscriber.poll("x") }, -> { subscriber.receive(timeout: Object.new) }, -> { Leat.wait_any([1]) },
             -> { member.acknowledge(1) }, -> { member.acknowledge([1]) }, -> { member.requeue("x") },
             -> { Leat::Topic.create(1) }, -> { Leat::Topic.create("x", policy: 1) }, -> { publisher.claim("x") },
             -> { publisher.claim(3) { |claim| claim << 1 } }, -> { topic.subscriber(from: 1) }]
    types.each { |call| raises(TypeError, &call) }
    values = [-> { publisher.publish }, -> { publisher.publish("x", "y") }, -> { publisher.publish("x", other: 1) },
              -> { subscriber.poll(0) }, -> { subscriber.poll(-1) }, -> { subscriber.receive(timeout: -1) },
              -> { subscriber.receive(timeout: Float::NAN) }, -> { Leat.wait_any([]) }, -> { topic.group },
              -> { Leat.wait_any([subscriber, subscriber]) }, -> { topic.publisher(other: 1) },
              -> { Leat::Topic.create("x", policy: :other) }, -> { topic.subscriber(from: { other: 1 }) },
              -> { publisher.publish_batch([{ value: "x", other: 1 }]) }, -> { topic.subscriber(from: {}) },
              -> { Leat::Topic.create("x", partitions: 1 << 32) }]
    values.each { |call| raises(ArgumentError, &call) }
    raises(RangeError) { publisher.claim(1 << 64) }
    raises(LocalJumpError) { subscriber.view }
    [Leat::Publisher, Leat::Topic, Leat::Record, Leat::Claim].each { |kind| raises(TypeError) { kind.new } }
    raises(Leat::InvalidArgument) { Leat::Topic.create("a/b") }
    raises(Leat::Unsupported) { Leat::Topic.open("lightq://x") }
    publisher.publish("x") # All of that left it usable.
  end

  # Classes of the program's own that do not keep what the core's promise.
  def test_objects_that_lie
    liar = Class.new(Hash) { def to_a = 5 }
    topic.subscriber(from: liar[:offset, 0]) { |subscriber| equal(0, subscriber.offset) }
    number = Class.new(Numeric) { def to_f = raise(KeyError) }
    raises(KeyError) { topic.subscriber.receive(timeout: number.new) }
    raises(RangeError) { topic.subscriber.receive(timeout: Complex(1, 1)) }
    path = Class.new { def to_path = 5 }
    raises(TypeError) { Leat::Topic.list(directory: path.new) }
    places = { directory: "/a", "directory" => "/b", data_directory: "/c", "data_directory" => "/d" }
    raises(ArgumentError, "too many keywords") { Leat::Topic.open("topic", **places) }
    headers = Hash.new { raise KeyError }.merge!("a" => "b")
    equal(0, topic.publisher.publish("x", headers: headers))
  end

  def test_objects_are_not_copied
    publisher = topic.publisher
    subscriber = topic.subscriber(from: :beginning)
    publisher.publish("x")
    record = subscriber.receive
    [publisher, record, topic].each do |object|
      raises(TypeError) { object.dup }
      raises(TypeError) { Marshal.dump(object) }
    end
    subscriber.freeze.close
    check(subscriber.closed?)
    raises(Leat::ClosedError) { subscriber.poll }
  end

  def test_ractors_get_an_error
    topic
    in_child do # Ractors warn.
      $stderr.reopen(File::NULL)
      %w[Leat::Topic.open("topic") Leat::Topic.list].each do |call|
        raises(Ractor::RemoteError) { Ractor.new(call) { |text| eval(text) }.take } # rubocop:disable Security/Eval
      end
      raises(TypeError) { Ractor.new { Ractor.receive }.send(topic, move: true) }
    end
  end

  # Threads, signals, interrupts and forks at random moments, all on the same handles.
  def test_everything_at_once
    topic(capacity_bytes: 1 << 16, segment_bytes: 1 << 13)
    publisher, subscriber, member = topic.publisher, topic.subscriber, topic.group("g").join
    calls = [-> { publisher.publish("x" * 100, timeout: 0.001) }, -> { publisher.publish_batch(%w[a b], timeout: 0.001) },
             -> { subscriber.poll }, -> { subscriber.receive(timeout: 0.001) }, -> { subscriber.view(5, timeout: 0.001, &:size) },
             -> { publisher.claim(9, timeout: 0) { |claim| Thread.pass || claim << "y" } }, -> { topic.info && topic.group("g").info },
             -> { member.receive_batch(9, timeout: 0.001).each { |one| member.acknowledge(one) } },
             -> { topic.subscriber.close }, -> { subscriber.read_values(5) }, -> { Leat.wait_any([subscriber], timeout: 0.001) }]
    random = Random.new(seed = Integer(ENV.fetch("LEAT_SEED", Random.new_seed % 100_000)))
    act = lambda do
      calls[random.rand(calls.size)].call
    rescue Leat::Error
      nil
    end
    before = trap("USR1") { act.call }
    stop = now + 2
    threads = Array.new(3) { Thread.new { act.call while now < stop } }
    threads.each { |thread| thread.report_on_exception = false }
    while now < stop - 0.2
      threads.sample.raise("now") if random.rand(20).zero?
      Process.kill("USR1", Process.pid)
      child = fork { 20.times { act.call } && GC.start && exit!(0) }
      check(Process.wait2(child)[1].success?, "a child failed; LEAT_SEED=#{seed}")
    end
    threads.each { |thread| thread.join rescue nil } # rubocop:disable Style
    subscriber.poll
    member.close
    topic.delete_group("g")
    check(publisher.publish("It is usable.", timeout: 5).positive?)
  ensure
    trap("USR1", before || "DEFAULT")
  end

  def test_claims
    publisher = topic.publisher
    claim = publisher.claim(5)
    raises(Leat::Busy) { publisher.publish("x") }
    raises(Leat::InvalidArgument) { claim << "123456" }
    raises(Leat::InvalidArgument) { claim.write("x", at: 5) }
    raises(Leat::InvalidArgument) { claim.write("x", at: 1 << 63) }
    raises(Leat::InvalidArgument) { claim.commit(6) }
    claim << "12345"
    equal(0, claim.commit)
    [-> { claim.commit }, -> { claim.abort }, -> { claim << "x" }].each { |call| raises(Leat::NotInFlight, &call) }
    other = publisher.claim(5)
    raises(Leat::NotInFlight) { claim << "x" }
    other.abort
    raises(Leat::TooLarge) { publisher.claim(1 << 40) }
    equal(2, publisher.claim(5) { |third| third.commit && publisher.close })
    publisher = topic.publisher
    raises(Leat::ClosedError) { publisher.claim(5) { publisher.close } }
  end

  def test_two_threads_at_once
    subscriber = topic.subscriber
    waiting = elsewhere { subscriber.receive }
    raises(Leat::Busy, "the subscriber is in use by another thread") { subscriber.poll }
    raises(Leat::Busy) { Leat.wait_any([subscriber]) }
    topic.publisher.publish("x")
    equal("x", waiting.value.value)
  end

  def test_close_during_a_wait_elsewhere
    subscriber = topic.subscriber
    member = topic.group("workers").join
    [[subscriber, -> { subscriber.receive }], [member, -> { member.receive }]].each do |handle, call|
      waiting = elsewhere(&call)
      started = now
      handle.close
      raises(Leat::Stopped) { waiting.value }
      check(now - started < 1)
      check(handle.closed?)
    end
  end

  def test_values_that_change_while_a_publish_waits
    topic(capacity_bytes: 1 << 16, segment_bytes: 1 << 13)
    subscriber = topic.subscriber(from: :beginning)
    publisher = topic.publisher
    raises(Leat::Full) { loop { publisher.publish("x" * 1000, timeout: 0) } }
    value = +"a" * 3000
    waiting = elsewhere { publisher.publish_batch([value]) }
    value.replace("b" * 3000)
    GC.start
    GC.compact if GC.respond_to?(:compact)
    values = []
    eventually { values.concat(subscriber.poll.map(&:value)) && !waiting.alive? }
    until (more = subscriber.poll).empty? do values.concat(more.map(&:value)) end
    equal("a" * 3000, values.last)
  end

  def test_a_collector_that_moves_objects
    publisher = topic.publisher
    subscriber = topic.subscriber(from: :beginning)
    publisher.publish_batch(Array.new(100) { |i| i.to_s })
    records = subscriber.poll(100)
    GC.stress = true
    publisher.publish("x", key: "k", headers: { "a" => "b" })
    publisher.publish_batch(["y", { value: "z", headers: [%w[a b]] }])
    equal([%w[a b]], subscriber.poll(3)[2].headers)
    subscriber.view(timeout: 0) { nil } rescue nil # rubocop:disable Style/RescueModifier
    GC.stress = false
    GC.verify_compaction_references(toward: :empty, double_heap: true) if GC.respond_to?(:verify_compaction_references)
    equal(Array.new(100) { |i| i.to_s }, records.map(&:value))
  end

  def test_parts_over_4_gib
    publisher = topic.publisher
    huge = untouched((1 << 32) + 1)
    [-> { publisher.publish(huge) }, -> { publisher.publish("", key: huge) }, -> { publisher.publish_batch([huge]) },
     -> { publisher.publish("", headers: { "h" => huge }) }, -> { publisher.publish("", headers: [[huge, "h"]]) },
     -> { publisher.publish_batch([{ value: "", key: huge }]) }, -> { publisher.publish_batch(["x", { value: huge }]) },
     -> { publisher.claim(huge.size) }, -> { publisher.claim((1 << 64) - 1) }].each do |call|
      raises(Leat::TooLarge, &call)
    end
    publisher.claim(9) { |claim| raises(Leat::InvalidArgument) { claim << huge } && claim << "usable" }
    equal("usable", topic.subscriber(from: { last: 1 }).receive(timeout: 5).value)
  end

  # No part is, but all together are.
  def test_sums_over_4_gib
    publisher = topic.publisher
    part = untouched(1 << 28)
    [-> { publisher.publish_batch([part] * 17) }, -> { publisher.publish("", headers: [["h", part]] * 17) },
     -> { publisher.publish("", headers: [[part, ""]] * 17) }].each { |call| raises(Leat::TooLarge, &call) }
    publisher.publish("usable")
    equal("usable", topic.subscriber(from: { last: 1 }).receive(timeout: 5).value)
  end

  # A String of so many bytes. They are mapped, and no memory is used for them as long as nobody reads them all.
  def untouched(size)
    function = lambda do |name, arguments|
      Fiddle::Function.new(Fiddle::Handle::DEFAULT[name], arguments, Fiddle::TYPE_VOIDP)
    end
    number = Fiddle::TYPE_LONG
    map = function.call("mmap", [number, number, Fiddle::TYPE_INT, Fiddle::TYPE_INT, Fiddle::TYPE_INT, number])
    at = map.call(0, size, 1, 0x4022, -1, 0) # PROT_READ; MAP_NORESERVE | MAP_ANONYMOUS | MAP_PRIVATE
    check(at.to_i != -1)
    function.call("rb_str_new_static", [number, number]).call(at.to_i, size).to_value
  end

  def test_fork
    publisher = topic.publisher
    subscriber = topic.subscriber(from: :beginning)
    member = topic.group("workers", from: :beginning).join
    busy = topic.subscriber
    waiting = elsewhere { busy.receive }
    name = ->(call) { call.call && "none" rescue $!.class.name } # rubocop:disable Style
    said = in_child do
      calls = [-> { publisher.publish("x") }, -> { subscriber.poll }, -> { member.receive }, -> { topic.publisher },
               -> { busy.poll }]
      names = calls.map { |call| name.call(call) }
      [publisher, subscriber, member, busy, topic].each(&:close)
      Leat::Topic.open("topic") { |own| own.publisher { |mine| mine.publish("child") } }
      names
    end
    equal(["Leat::Forked"] * 5, eval(said)) # rubocop:disable Security/Eval
    equal("child", waiting.value.value)
    equal(1, publisher.publish("parent"))
    equal(%w[child parent], subscriber.receive_batch(2, timeout: 5).map(&:value))
    equal("child", member.receive(timeout: 5).value)
  end

  def test_views_and_claims_are_not_the_childs
    publisher = topic.publisher
    subscriber = topic.subscriber(from: :beginning)
    publisher.publish("x")
    said = nil
    subscriber.view do |batch|
      publisher.claim(1) do |claim|
        claim << "y"
        said = in_child do
          [-> { batch[0].value }, -> { batch[0].getbyte(0) }, -> { claim.write("z", at: 0) },
           -> { subscriber.read_values }, -> { subscriber.receive(timeout: 0) }, -> { subscriber.view { nil } }].map do |call|
            call.call && "none" rescue $!.class.name # rubocop:disable Style
          end
        end
      end
    end
    equal(["Leat::Forked"] * 6, eval(said)) # rubocop:disable Security/Eval
    equal(%w[y], subscriber.read_values)
  end

  CHILDREN = { fork: ->(input) { fork { input.read } }, spawn: ->(input) { spawn("cat", in: input, out: File::NULL) },
               system: ->(input) { Thread.new { system("cat", in: input, out: File::NULL) } },
               popen: ->(input) { IO.popen("cat >/dev/null", in: input) } }.freeze

  # Others go on when a process dies within a claim and with records of a group, though a child of it lives on.
  def test_a_child_does_not_keep_its_parent_alive
    group = topic.group("workers", from: :beginning)
    subscriber = topic.subscriber
    member = group.join
    CHILDREN.each do |kind, start|
      topic.publisher { |publisher| publisher.publish_batch(%w[one two]) }
      until_closed, close = IO.pipe
      dying = fork { die_with_a_child(until_closed, close, start) }
      equal(Signal.list["KILL"], Process.wait2(dying)[1].termsig)
      until_closed.close
      entries = Array.new(3) { subscriber.receive(timeout: 5) }
      equal(["one", "two", :died], entries.map { |one| one.gap? ? one.reason : one.value })
      again = Array.new(2) { member.receive(timeout: 5) }
      equal([["one", 2], ["two", 2]], again.map { |one| [one.value, one.deliveries] }.sort)
      member.acknowledge(again)
      close.write("x") # The child lives on: somebody can read this.
      close.close
    rescue StandardError => e
      raise Failed, "with a child by #{kind}: #{e.message}"
    end
  end

  def die_with_a_child(until_closed, close, start)
    close.close
    own = Leat::Topic.open("topic")
    member = own.find_group("workers").join
    held = []
    held.concat(member.receive_batch(2, timeout: 5)) while held.size < 2
    claim = own.publisher.claim(10)
    start.call(until_closed)
    sleep(0.001) until child?
    Process.kill("KILL", Process.pid) if claim
  ensure
    exit!(1)
  end

  # Whether this process has one, even one that a thread of it starts.
  def child?
    Process.wait(-1, Process::WNOHANG).nil?
  rescue Errno::ECHILD
    false
  end
end
