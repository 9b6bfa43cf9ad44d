# frozen_string_literal: true

# If these failed, Ctrl-C, Timeout or Thread#kill would not end a wait, or one waiting thread would stop all others or
# keep a CPU busy.

require "open3"

# Waits end when they should, and other threads run meanwhile.
class WaitsTest < Tests
  SOON = 0.1 # Seconds.
  ROUNDS = 200
  SPARE = 50

  # They come before, in and after a wait that ends by itself, and in one that does not.
  def test_interrupts_at_random_moments_end_a_wait
    subscriber = topic.subscriber
    calls = endless_waits(subscriber)
    interrupt_in_both_ways do |round, random|
      wait_for_nothing(subscriber, random.rand(0.005))
      calls[round / 2 % calls.size].call
    end
    equal([], subscriber.poll)
  end

  # Amid the spinning, and after it.
  def test_interrupts_end_a_wait_that_spins
    calls = [0.001, 3600].flat_map do |spin|
      subscriber = topic.subscriber(spin: spin)
      member = topic.group("workers").join(spin: spin)
      [-> { subscriber.receive }, -> { subscriber.wait }, -> { Leat.wait_any([subscriber]) }, -> { member.receive },
       -> { member.wait }]
    end
    interrupt_in_both_ways { |round, _random| calls[round / 2 % calls.size].call }
  end

  def test_thread_raise_ends_a_wait_outside_the_main_thread
    calls = endless_waits(topic.subscriber)
    other = Thread.new do
      interrupt_many([->(thread) { thread.raise(Interrupt) }]) { |round, _random| calls[round % calls.size].call }
    end
    other.report_on_exception = false
    other.join
  end

  def interrupt_in_both_ways(&waiting)
    before = trap("USR1") { raise Interrupt }
    interrupt_many([->(thread) { thread.raise(Interrupt) }, ->(_thread) { Process.kill("USR1", Process.pid) }], &waiting)
  ensure
    trap("USR1", before || "DEFAULT")
  end

  # Interrupts the block again and again, and now and then in one of its long sleeps. It must end soon each time.
  def interrupt_many(ways)
    random = Random.new(seed = Integer(ENV.fetch("LEAT_SEED", Random.new_seed % 100_000)))
    spare = SPARE
    ROUNDS.times do |round|
      pause = round % 19 == 18 ? 0.15 : [0, random.rand(0.0002), random.rand(0.01)].sample(random: random)
      took, late = interrupt_one(pause, ways[round % ways.size]) { yield round, random }
      next if took < SOON

      # The machine held up this process, not only its wait: another one instead.
      check(late > took - SOON && (spare -= 1).positive?, "round #{round} took #{took} s; LEAT_SEED=#{seed}")
      redo
    end
  end

  # Each in the quickest of three tries: the machine may hold up this process.
  def test_an_interrupt_ends_a_wait_whose_sleeps_have_become_long
    endless_waits(topic.subscriber).each_with_index do |call, index|
      check(3.times.any? { interrupt_one(0.2, ->(thread) { thread.raise(Interrupt) }, &call).first < SOON }, "call #{index}")
    end
  end

  def endless_waits(subscriber)
    member = topic.group("workers").join
    full = topic("full", capacity_bytes: 1 << 16, segment_bytes: 1 << 13)
    @slow = full.subscriber
    publisher = full.publisher
    raises(Leat::Full) { loop { publisher.publish("x" * 1000, timeout: 0) } }
    kept = topic("kept", durable: :os)
    @open_claim = kept.publisher.claim(9)
    flusher = kept.publisher
    flusher.publish("x") # Not durable before the claim ends.
    [-> { subscriber.receive }, -> { member.receive }, -> { publisher.publish("x" * 3000) }, -> { subscriber.wait },
     -> { Leat.wait_any([subscriber]) }, -> { publisher.claim(3000) }, -> { subscriber.view { nil } },
     -> { publisher.publish_batch(["x" * 3000]) }, -> { Leat::Topic.open("never", timeout: 600) },
     -> { kept.repair }, -> { flusher.flush }]
  end

  def wait_for_nothing(subscriber, seconds)
    subscriber.receive(timeout: seconds)
  rescue Leat::Timeout
    nil
  end

  # The seconds from an interrupt of this thread to the end of the block, and how late a sleep of another thread was
  # meanwhile, at most.
  def interrupt_one(pause, way, &waiting)
    sent = took = sender = nil
    late = 0
    waiter = Thread.current
    begin
      sender = Thread.new do
        sleep(pause)
        sent = began = now
        way.call(waiter)
        loop do
          sleep(0.001)
          late = [late, now - began - 0.002].max
          break if took

          began = now
        end
      end
      waiting.call
      raise Failed, "it returned"
    rescue Interrupt
      took = now - sent
    end
    sender&.join
    [took, late]
  end

  def test_timeout_and_kill_end_a_wait
    subscriber = topic.subscriber
    started = now
    raises(Timeout::Error) { Timeout.timeout(0.05) { subscriber.receive } }
    check(now - started < 1)
    thread = elsewhere { subscriber.receive }
    thread.kill
    check(thread.join(1))
    equal([], subscriber.poll) # It is free again.
  end

  def test_other_threads_run_meanwhile
    subscriber = topic.subscriber
    waiting = elsewhere { subscriber.receive }
    started = now
    count = 0
    count += 1 until now - started > 0.2
    check(count > 10_000, "only #{count} rounds")
    topic.publisher.publish("x")
    equal("x", waiting.value.value)
  end

  # As a process that works on groups does.
  def with_groups_locked
    set_lock = 37 # F_OFD_SETLK
    File.open(File.join(ENV.fetch("LEAT_DIR"), "topic", "control"), "r+") do |file|
      file.fcntl(set_lock, [1, 0, (1 << 56) - 1, 1, 0].pack("s2x4q2lx4"))
      yield
    end
  end

  def test_other_threads_run_while_groups_are_locked
    topic.group("old")
    calls = [-> { topic.group("new") }, -> { topic.find_group("old") }, -> { topic.delete_group("old") }]
    count = 0
    with_groups_locked do
      waiting = calls.map { |call| elsewhere(&call) }
      started = now
      count += 1 until now - started > 0.2
      check(waiting.all?(&:alive?) && now - started < 2)
    end
    check(count > 1000, "only #{count} rounds")
    eventually { topic.group_names == ["new"] }
  end

  def test_a_handler_that_raises_nothing_lets_the_wait_go_on
    subscriber = topic.subscriber
    caught = 0
    before = trap("USR1") { caught += 1 }
    helper = Thread.new do
      3.times do |count|
        sleep(0.03)
        Process.kill("USR1", Process.pid)
        eventually { caught == count + 1 }
      end
      topic.publisher.publish("x")
    end
    equal("x", subscriber.receive(timeout: 10).value)
    helper.join
    equal(3, caught)
  ensure
    trap("USR1", before || "DEFAULT")
  end

  def test_control_c_ends_the_program
    topic
    program = 'require "leat"; topic = Leat::Topic.open("topic"); begin; puts "ready"; $stdout.flush;' \
              'topic.subscriber.receive; rescue Interrupt; puts "interrupted"; end'
    20.times do |round|
      Open3.popen2(RbConfig.ruby, *$LOAD_PATH.first(3).map { |path| "-I#{path}" }, "-e", program) do |_in, out, process|
        out.gets
        sleep(0.01 * (round % 4))
        started = now
        Process.kill("INT", process.pid)
        said = out.read
        check(now - started < 1)
        equal("interrupted\n", said)
      end
    end
  end

  def test_deadlines
    subscriber = topic.subscriber
    [0, 0.03, 0.12].each do |seconds|
      started = now
      raises(Leat::Timeout, "the deadline passed") { subscriber.receive(timeout: seconds) }
      check((now - started).between?(seconds, seconds + 1))
    end
    raises(Leat::Timeout) { subscriber.wait(timeout: 0.01) }
    raises(Leat::Timeout) { Leat.wait_any([subscriber], timeout: Rational(1, 100)) }
  end

  def test_wait_any_names_the_one_that_has_something
    first = topic.subscriber
    second = topic("other").subscriber
    topic("other").publisher.publish("x")
    equal(1, Leat.wait_any([first, second], timeout: 5))
    second.wait(timeout: 5)
    equal(1, second.poll.size)
  end

  def test_a_descriptor_becomes_readable
    subscriber = topic.subscriber
    member = topic.group("workers", from: :beginning).join
    raises(Leat::Timeout) { member.receive(timeout: 0) }
    equal(nil, IO.select([subscriber, member], nil, nil, 0.05))
    topic.publisher.publish("x")
    check(IO.select([subscriber], nil, nil, 5))
    check(IO.select([member], nil, nil, 5))
    equal("x", subscriber.poll[0].value)
    eventually { IO.select([subscriber], nil, nil, 0).nil? || subscriber.poll.nil? }
    check(subscriber.wait_fd.positive?)
    subscriber.close
  end

  def test_stop_ends_a_publish
    topic(capacity_bytes: 1 << 16, segment_bytes: 1 << 13)
    subscriber = topic.subscriber
    publisher = topic.publisher
    raises(Leat::Full) { loop { publisher.publish("x" * 1000, timeout: 0) } }
    raises(Leat::Timeout) { publisher.publish("x" * 1000, timeout: 0.02) }
    waiting = elsewhere { publisher.publish("x" * 1000) }
    publisher.stop
    raises(Leat::Stopped) { waiting.value }
    publisher.resume
    raises(Leat::Full) { publisher.claim(1000, timeout: 0) }
    check(!subscriber.poll.empty?)
  end

  # Of this process, in the cheapest of three waits: what else the machine does empties the caches, and makes waking up
  # dearer.
  def test_an_idle_wait_costs_nearly_nothing
    member = topic.group("workers").join
    raises(Leat::Timeout) { member.receive(timeout: 0) } # Its first look is no wait.
    [topic.subscriber, member].each do |handle|
      shares = []
      3.times do
        shares << share_used { raises(Leat::Timeout) { handle.receive(timeout: 2) } }
        break if shares.last < 0.001
      end
      check(shares.min < 0.001, "#{shares} of a CPU")
    end
  end

  # Each in the cheapest of three rounds.
  def test_idle_waits_side_by_side_cost_nearly_nothing
    first = topic.subscriber
    second = topic.subscriber
    calls = [-> { Leat::Topic.open("never", timeout: 2) }, -> { first.wait(timeout: 2) },
             -> { Leat.wait_any([second], timeout: 2) }]
    shares = Hash.new(1)
    3.times do
      calls.reject { |call| shares[call] < 0.001 }.map do |call|
        Thread.new do
          used = share_used(Process::CLOCK_THREAD_CPUTIME_ID) { raises(Leat::Error, &call) }
          shares[call] = [used, shares[call]].min
        end
      end.each(&:join)
    end
    check(shares.size == 3 && shares.values.max < 0.001, "#{shares.values} of a CPU")
  end

  def share_used(clock = Process::CLOCK_PROCESS_CPUTIME_ID)
    started = now
    before = Process.clock_gettime(clock)
    yield
    (Process.clock_gettime(clock) - before) / (now - started)
  end
end
