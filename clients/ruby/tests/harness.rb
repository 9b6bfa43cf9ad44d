# frozen_string_literal: true

# Debian's ruby brings no test framework, so these few lines are one: a method of a class derived from Tests whose name
# begins with test_ is a test, with a directory of topics of its own.
#
#     ruby -I build/clients/ruby/lib clients/ruby/tests/all.rb [NAME…]
require "fileutils"
require "leat"
require "timeout"
require "tmpdir"

# The base of the test classes, with what they assert.
class Tests
  LIMIT_SECONDS = 120 # For one test.
  Failed = Class.new(StandardError)

  class << self
    def all = @all ||= []
    def inherited(test) = all << test
  end

  def check(fact, text = "not true")
    raise Failed, text unless fact
  end

  def equal(wanted, got)
    check(wanted == got, "wanted #{wanted.inspect}, got #{got.inspect}")
  end

  # The error that the block must raise.
  def raises(kind, text = nil)
    yield
  rescue Exception => e # rubocop:disable Lint/RescueException
    raise unless e.is_a?(kind)

    check(e.message.include?(text), "wanted '#{text}', got '#{e.message}'") if text
    e
  else
    raise Failed, "nothing raised #{kind}"
  end

  # Waits until the block is true.
  def eventually(seconds = 10)
    deadline = now + seconds
    sleep(0.005) until (done = yield) || now > deadline
    check(done, "did not come true")
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  # A call in another thread, which waits when this returns.
  def elsewhere(&call)
    thread = Thread.new(&call)
    thread.report_on_exception = false
    sleep(0.1)
    check(thread.alive?, "it did not wait")
    thread
  end

  # What the block prints in a child process, and how that ends.
  def in_child
    read, write = IO.pipe
    child = fork do
      read.close
      write.write(yield.inspect)
      write.close
      exit!(0)
    end
    write.close
    text = read.read
    read.close
    equal(0, Process.wait2(child)[1].exitstatus)
    text
  end

  def topic(name = "topic", **options)
    @topics ||= {}
    @topics[name] ||= Leat::Topic.create(name, **options)
  end

  def run_one(name)
    base = File.directory?("/dev/shm") ? "/dev/shm" : nil
    ENV["LEAT_DIR"] = Dir.mktmpdir("leat-ruby-", base)
    ENV["LEAT_DATA_DIR"] = File.join(ENV["LEAT_DIR"], "data")
    Timeout.timeout(LIMIT_SECONDS) { public_send(name) }
  ensure
    @topics&.each_value(&:close)
    FileUtils.rm_rf(ENV["LEAT_DIR"])
  end

  # Runs them; the number of failures.
  def self.run(wanted)
    failures = 0
    all.each do |tests|
      tests.public_instance_methods(false).grep(/^test_/).sort.each do |name|
        next unless wanted.empty? || wanted.include?(name.to_s)

        tests.new.run_one(name)
        puts "ok #{name}"
      rescue Exception => e # rubocop:disable Lint/RescueException
        failures += 1
        puts "FAILED #{name}: #{e.class}: #{e.message}\n  #{e.backtrace.first(6).join("\n  ")}"
      end
    end
    failures
  end
end
