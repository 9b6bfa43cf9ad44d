# frozen_string_literal: true

# If these failed, one fiber that waits would stop all others of its thread, also the one that it waits for.

# The least that a scheduler does: Ruby brings none.
class Scheduler
  def initialize
    @readable = {} # Fibers by IO.
    @timers = {} # When fibers go on.
    @unblocked = Thread::Queue.new
  end

  def fiber(&)
    Fiber.new(blocking: false, &).tap(&:resume)
  end

  def io_wait(io, _events, timeout)
    @readable[Fiber.current] = io
    sleep_until_resumed(timeout)
  ensure
    @readable.delete(Fiber.current)
  end

  def kernel_sleep(seconds = nil) = sleep_until_resumed(seconds)

  def block(_blocker, timeout = nil) = sleep_until_resumed(timeout)

  def unblock(_blocker, fiber) = @unblocked.push(fiber)

  def close
    resume_some until @timers.empty?
  end

  private

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def sleep_until_resumed(seconds)
    @timers[Fiber.current] = now + (seconds || 1e9)
    Fiber.yield
  end

  def resume_some
    ready, = IO.select(@readable.values, nil, nil, [[@timers.values.min - now, 0].max, 0.005].min)
    fibers = @timers.select { |fiber, at| at <= now || ready&.include?(@readable[fiber]) }.keys
    fibers << @unblocked.pop until @unblocked.empty?
    fibers.uniq.each do |fiber|
      @timers.delete(fiber)
      fiber.resume
    end
  end
end

# Waits in fibers with a scheduler.
class FibersTest < Tests
  # Runs each block in a fiber, and beside them one that counts; how often that came to it.
  def in_fibers(*blocks)
    ticks = 0
    failed = nil
    thread = Thread.new do
      Fiber.set_scheduler(Scheduler.new)
      left = blocks.size
      blocks.each do |block|
        Fiber.schedule do
          block.call
        rescue Exception => e # rubocop:disable Lint/RescueException
          failed = e
        ensure
          left -= 1
        end
      end
      Fiber.schedule { (ticks += 1) && sleep(0.001) while left.positive? }
    end
    check(thread.join(20), "it blocked")
    raise failed if failed

    ticks
  end

  def test_other_fibers_go_on
    subscriber = topic.subscriber
    member = topic.group("workers").join
    calls = [-> { subscriber.receive(timeout: 0.05) }, -> { member.receive(timeout: 0.05) },
             -> { Leat.wait_any([subscriber], timeout: 0.05) }, -> { subscriber.wait(timeout: 0.05) },
             -> { subscriber.view(timeout: 0.05) { nil } }, -> { member.receive_batch(timeout: 0.05) },
             -> { Leat::Topic.open("never", timeout: 0.05) }]
    calls.each do |call|
      ticks = in_fibers(-> { raises(Leat::Error, &call) })
      check(ticks > 5, "only #{ticks} ticks")
    end
  end

  def test_a_reader_and_a_publisher_of_one_thread
    small = topic("small", capacity_bytes: 1 << 16, segment_bytes: 1 << 13)
    subscriber = small.subscriber
    publisher = small.publisher
    got = []
    publish = lambda do
      150.times { |i| publisher.publish(i.to_s.ljust(1000)) }
      150.upto(299) { |i| publisher.claim(1000) { |claim| claim << i.to_s.ljust(1000) } }
      subscriber.stop
    end
    in_fibers(-> { subscriber.each { |record| got << record.value.to_i } }, publish)
    got.concat(subscriber.poll(1000).map { |record| record.value.to_i })
    equal((0...300).to_a, got)
  end

  def test_stop_and_close_end_a_wait
    subscriber = topic.subscriber
    other = topic.subscriber
    other.to_io # Which close() closes, too.
    member = topic.group("workers").join
    ends = lambda do
      sleep(0.01)
      raises(Leat::Busy, "or fiber") { subscriber.poll }
      subscriber.stop
      member.stop
      other.close
    end
    waits = [subscriber, member, other].map { |one| -> { raises(Leat::Stopped) { one.receive } } }
    in_fibers(*waits, ends)
    check(other.closed?)
  end

  def test_durable_topics
    kept = topic("kept", durable: :fsync)
    publisher = kept.publisher(acknowledge: :durable)
    other = kept.publisher
    open_claim = other.claim(1)
    ticks = in_fibers(-> { raises(Leat::NotDurable) { publisher.publish("x", timeout: 0.05) } },
                      lambda {
                        sleep(0.07)
                        open_claim.abort
                      })
    check(ticks > 5)
    in_fibers(-> { equal(2, publisher.publish("y")) }, -> { kept.publisher.flush })
  end
end
