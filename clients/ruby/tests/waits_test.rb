# frozen_string_literal: true

require "open3"

# Waits end when they should, and other threads run meanwhile.
class WaitsTest < Tests
  SOON = 0.1
  ROUNDS = 200

  def test_interrupts_at_random_moments_end_a_wait
    subscriber = topic.subscriber
    member = topic.group("workers").join
    full = topic("full", capacity_bytes: 1 << 16, segment_bytes: 1 << 13)
    slow = full.subscriber
    publisher = full.publisher
    raises(Leat::Full) { loop { publisher.publish("x" * 1000, timeout: 0) } }
    random = Random.new(seed = Integer(ENV.fetch("LEAT_SEED", Random.new_seed % 100_000)))
    calls = [-> { subscriber.receive }, -> { member.receive }, -> { publisher.publish("x" * 3000) },
             -> { subscriber.wait }, -> { Leat.wait_any([subscriber]) }, -> { publisher.claim(3000) }]
    late = ROUNDS.times.count { |round| interrupt_one(calls[round % calls.size], random.rand(0.003)) > SOON }
    check(late <= ROUNDS / 50, "#{late} of #{ROUNDS} took longer than #{SOON} s; LEAT_SEED=#{seed}")
    equal([], subscriber.poll)
    check(!slow.poll.empty?)
  end

  # The seconds from the interrupt to the end of the call.
  def interrupt_one(call, pause)
    ready = Queue.new
    thread = Thread.new do
      ready << true
      call.call
    rescue Interrupt
      now
    end
    ready.pop
    sleep(pause)
    started = now
    thread.raise(Interrupt)
    begin
      thread.value - started
    rescue Interrupt # Before or behind the part that rescues.
      0
    end
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
      3.times { sleep(0.03) && Process.kill("USR1", Process.pid) }
      sleep(0.05)
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

  def test_an_idle_wait_costs_nearly_nothing
    subscriber = topic.subscriber
    used = -> { Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) }
    before = used.call
    raises(Leat::Timeout) { subscriber.receive(timeout: 2) }
    check(used.call - before < 0.1, "#{used.call - before} s of 2 s")
  end
end
