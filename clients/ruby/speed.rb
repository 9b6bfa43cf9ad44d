# frozen_string_literal: true

# How fast this client is: speed.rb TOPIC SIZE RECORDS prints a line of JSON, nanoseconds for each record.
#
# RECORDS is a multiple of 64, and the topic holds so many and more.
require "leat"

# What is measured, with one topic.
class Speed
  BATCH = 64

  def initialize(name, size, records)
    @topic = Leat::Topic.open(name)
    @value = "x".b * size
    @last = size - 1
    @values = Array.new(BATCH, @value)
    @records = records
  end

  def publish(publisher)
    left = @records
    while left.positive?
      publisher.publish(@value)
      left -= 1
    end
  end

  def publish_batches(publisher)
    offset = nil
    left = @records
    while left.positive?
      offset = publisher.publish_batch(@values)
      left -= BATCH
    end
    @first = offset + BATCH - @records # Where the last RECORDS begin.
  end

  # What was read is looked at: the last bytes of all values, as their sum.
  def check(seen)
    raise "a record is not what was published" if seen != 120 * @records
  end

  def read(subscriber)
    seen = 0
    left = @records
    while left.positive?
      values = subscriber.read_values(BATCH)
      values.each { |value| seen += value.getbyte(@last) }
      left -= values.size
    end
    check(seen)
  end

  def view(subscriber)
    seen = 0
    left = @records
    while left.positive?
      subscriber.view(BATCH) do |batch|
        batch.each { |record| seen += record.getbyte(@last) }
        left -= batch.size
      end
    end
    check(seen)
  end

  # Runs it with a handle of its own: once to warm up, then measured.
  def measure(what)
    spent = Array.new(2) do
      open(what) do |handle|
        GC.start # What was made before is not this one's to collect.
        start = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
        public_send(what, handle)
        Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - start
      end
    end
    (spent.last.to_f / @records).round(1)
  end

  def open(what, &use)
    return @topic.publisher(&use) if what.start_with?("publish")

    @topic.subscriber(from: { offset: @first }, &use)
  end
end

begin
  speed = Speed.new(ARGV[0], Integer(ARGV[1]), Integer(ARGV[2]))
  puts JSON.generate({ runtime: "Ruby #{RUBY_VERSION}", publish_ns: speed.measure(:publish),
                       batch_ns: speed.measure(:publish_batches), read_ns: speed.measure(:read),
                       view_ns: speed.measure(:view) })
rescue StandardError => e
  abort("ruby: #{e.message}")
end
