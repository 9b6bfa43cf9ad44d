#!/usr/bin/env ruby
# frozen_string_literal: true

# The driver of the Ruby client for tests/conformance, whose README.md says what it reads and prints.
require "stringio"
require "leat"

SAFE = "a-zA-Z0-9\\-_.,/+"
NEW_TOPIC = { "policy" => :to_sym, "capacity" => :to_i, "segment" => :to_i, "partitions" => :to_i,
              "timestamps" => :to_i, "retain_all" => :to_i, "durable" => :to_sym, "sync_interval" => :to_i }.freeze
NEW_GROUP = { "mode" => :to_sym, "by_key" => :to_i, "max_deliveries" => :to_i, "in_flight" => :to_i,
              "lease" => :to_i }.freeze
LONGER_NAMES = { "capacity" => "capacity_bytes", "segment" => "segment_bytes" }.freeze
FLAGS = %w[timestamps retain_all by_key].freeze
TIMES = %w[sync_interval lease].freeze

def encode(data)
  data = data.b
  return data.gsub(/[^#{SAFE}]/on) { |byte| format("%%%02X", byte.ord) } if data.bytesize <= 64

  hash = data.each_byte.reduce(0xcbf29ce484222325) { |value, byte| ((value ^ byte) * 0x100000001b3) & 0xffffffffffffffff }
  format("%<size>d*%<hash>016x", size: data.bytesize, hash: hash)
end

def decode(text)
  text.b.gsub(/%([0-9A-F]{2})/n) { $1.hex.chr }
end

def from_of(text)
  kind, number = text.split(":")
  number ? { kind.to_sym => number.to_i } : kind.to_sym
end

# The words of a line.
class Command
  attr_reader :name, :words, :out

  def initialize(line, out)
    @name, *words = line.split(" ", -1)
    @out = out
    @words = words.grep_v(/=/)
    @options = words.grep(/=/).map { |word| word.split("=", 2) }
  end

  def option(name, otherwise = nil)
    pair = @options.assoc(name)
    pair ? pair[1] : otherwise
  end

  def all(name)
    @options.select { |key, _| key == name }.map(&:last)
  end

  def number(name, otherwise = nil)
    value = option(name)
    value ? value.to_i : otherwise
  end

  def flag(name)
    option(name) == "1"
  end

  def bad?
    !all("value").empty? && !(all("count") + all("prefix")).empty?
  end

  def timeout(otherwise = "0")
    text = option("timeout", otherwise)
    text == "never" ? nil : text.to_i / 1000.0
  end

  def value
    return decode(option("value", "")) unless option("fill")

    size, byte = option("fill").split(":")
    byte.hex.chr.b * size.to_i
  end

  def some(kinds)
    @options.select { |key, _| kinds.key?(key) }.to_h do |key, text|
      value = text.public_send(kinds[key])
      value = value == 1 if FLAGS.include?(key)
      value /= 1000.0 if TIMES.include?(key)
      [LONGER_NAMES.fetch(key, key).to_sym, value]
    end
  end

  def entry(one, behind = "")
    text = one.gap? ? gap(one) : record(one)
    @out.puts(text + behind)
  end

  private

  def gap(one)
    "gap partition=#{one.partition} offset=#{one.offset} count=#{one.count} reason=#{one.reason}"
  end

  def record(one)
    text = +"record partition=#{one.partition} offset=#{one.offset} value=#{encode(one.value)}"
    text << " key=#{encode(one.key)}" if one.key
    one.headers.each { |name, value| text << " header=#{encode(name)}:#{encode(value)}" }
    text << " timestamp=#{one.timestamp_ms}" if one.timestamp_ms
    text
  end
end

# What topics and publishers do. Each command is a method, which returns what comes behind `ok`.
module TopicCommands
  def do_create(command, _handle, name)
    keep(command, Leat::Topic.create(name, **command.some(NEW_TOPIC)))
  end

  def do_open(command, _handle, name)
    keep(command, Leat::Topic.open(name, timeout: command.timeout))
  end

  def do_delete(command, name)
    Leat::Topic.delete(name, force: command.flag("force"))
  end

  def do_info(_command, topic)
    partitions = topic.info["partitions"]
    "partitions=#{partitions.size} end=#{partitions.sum { |one| one["end"] }}"
  end

  def do_publisher(command, _handle, topic)
    keep(command, topic.publisher(exclusive: command.flag("exclusive"), partition: command.number("partition"),
                                  acknowledge: command.option("acknowledge")))
  end

  def do_publish(command, publisher)
    key = command.option("key")
    headers = command.all("header").map { |pair| pair.split(":", -1).map { |part| decode(part) } }
    offset = publisher.publish(command.value, key: key && decode(key), headers: headers,
                                              partition: command.number("partition"), timeout: command.timeout)
    "offset=#{offset}"
  end

  def do_batch(command, publisher)
    values = command.all("value").map { |value| decode(value) }
    if command.option("count")
      prefix = decode(command.option("prefix", ""))
      values = Array.new(command.number("count")) { |i| "#{prefix}#{i}" }
    end
    "offset=#{publisher.publish_batch(values, timeout: command.timeout)}"
  end

  def do_claim(command, publisher)
    claim = publisher.claim(command.number("size"), timeout: command.timeout)
    @claims[publisher] = claim
    "offset=#{claim.offset}"
  end

  def do_commit(command, publisher)
    @claims[publisher].write(command.value, at: 0).commit
    nil
  end

  def do_abort(_command, publisher)
    @claims[publisher].abort
  end

  def do_abandon(_command, publisher)
    publisher.claim(10) do |claim|
      claim << "unfinished"
      raise KeyError, "left by an exception"
    end
  rescue KeyError
    nil
  end

  def do_flush(command, publisher)
    publisher.flush(timeout: command.timeout("10000"))
  end

  def do_durable_offset(_command, publisher)
    "offset=#{publisher.durable_offset}"
  end
end

# What subscribers do.
module SubscriberCommands
  def do_subscriber(command, _handle, topic)
    in_place = command.flag("in_place")
    keep(command, topic.subscriber(from: from_of(command.option("from", "end")), in_place: in_place,
                                   gating: !command.flag("lossy") && !in_place,
                                   partition: command.number("partition")))
  end

  def do_poll(command, subscriber)
    subscriber.poll(command.number("limit", 64)).each { |one| command.entry(one) }
    nil
  end

  def do_take(command, subscriber)
    left = command.number("count", 1)
    while left.positive?
      subscriber.receive_batch([left, 64].min, timeout: command.timeout("10000")).each do |one|
        command.entry(one)
        left -= 1 unless one.gap?
      end
    end
  end

  def do_view(command, subscriber)
    left = command.number("count", 1)
    while left.positive?
      subscriber.view([left, 64].min, timeout: command.timeout("10000")) do |batch|
        batch.each { |one| command.entry(one) }
        left -= batch.count { |one| !one.gap? }
      end
    end
  end

  def do_wait(command, handle)
    handle.wait(timeout: command.timeout)
  end

  def do_wait_any(command, *subscribers)
    "index=#{Leat.wait_any(subscribers, timeout: command.timeout)}"
  end

  def do_offset(command, subscriber)
    "offset=#{subscriber.offset(partition: command.number("partition", 0))}"
  end
end

# What groups and members do.
module GroupCommands
  def do_group(command, _handle, topic, name)
    group = topic.group(name, from: from_of(command.option("from", "end")), **command.some(NEW_GROUP))
    keep(command, group)
    "created=#{group.created? ? 1 : 0}"
  end

  def do_find_group(command, _handle, topic, name)
    keep(command, topic.find_group(name))
  end

  def do_delete_group(command, topic, name)
    topic.delete_group(name, force: command.flag("force"))
  end

  def do_group_info(_command, group)
    info = group.info
    "returned=#{info["returned"]} taking=#{info["taking"]}"
  end

  def do_seek(command, group)
    group.seek(from_of(command.option("to")), partition: command.number("partition"))
  end

  def do_position(command, group)
    "offset=#{group.position(partition: command.number("partition", 0))}"
  end

  def do_join(command, _handle, group)
    @deliveries[command.words[0]] = []
    keep(command, group.join(name: command.option("name")))
  end

  def do_receive(command, member)
    received = @deliveries[command.words[0]]
    member.receive_batch(command.number("limit", 1), timeout: command.timeout).each do |one|
      next command.entry(one) if one.gap?

      command.entry(one, " delivery=#{received.size} deliveries=#{one.deliveries}")
      received << one
    end
    nil
  end

  def named(command, number)
    @deliveries[command.words[0]][number.to_i]
  end

  def do_acknowledge(command, member, *numbers)
    some = numbers.map { |number| named(command, number) }
    "count=#{member.acknowledge(some.size == 1 ? some[0] : some)}"
  end

  def do_acknowledge_up_to(command, member, number)
    "count=#{member.acknowledge_up_to(named(command, number))}"
  end

  def do_acknowledge_all(_command, member)
    "count=#{member.acknowledge_all}"
  end

  def do_requeue(command, member, number)
    member.requeue(named(command, number), delay: command.number("delay", 0) / 1000.0)
  end

  def do_in_flight(_command, member)
    "count=#{member.in_flight}"
  end
end

# Runs commands.
class Driver
  include TopicCommands
  include SubscriberCommands
  include GroupCommands

  def initialize
    @handles = {}
    @claims = {}
    @deliveries = {} # By the member's name, in the order of their numbers.
  end

  def answer(line, out)
    command = Command.new(line, out)
    return out.puts("error unknown_command") unless respond_to?("do_#{command.name}")
    return out.puts("error bad_command") if command.bad?

    result = public_send("do_#{command.name}", command, *command.words.map { |word| @handles.fetch(word, word) })
    out.puts(result ? "ok #{result}" : "ok")
  rescue Leat::Error => e
    out.puts("error #{e.name}")
  end

  def keep(command, handle)
    @handles[command.words[0]] = handle
    nil
  end

  def do_stop(_command, handle) = handle.stop
  def do_resume(_command, handle) = handle.resume
  def do_close(_command, handle) = handle.close

  def do_error_names(command)
    command.out.puts("0 ok")
    kinds = Leat.constants.map { |name| Leat.const_get(name) }
    kinds = kinds.select { |kind| kind.is_a?(Class) && kind < Leat::Error }
    kinds.sort_by { |kind| kind::CODE }.each { |kind| command.out.puts("#{kind::CODE} #{kind::NAME}") }
    nil
  end

  def start(line)
    out = StringIO.new
    @started = [Thread.new { answer(line, out) }, out]
    puts "ok"
  end

  def finish
    thread, out = @started
    thread.join
    print out.string
  end

  def in_child(line)
    child = fork do
      answer(line, $stdout)
      $stdout.flush
      exit!(0)
    end
    Process.wait(child)
  end

  def run
    $stdout.sync = false
    while (line = $stdin.gets)
      word, rest = line.chomp.split(" ", 2)
      case word
      when "quit" then break
      when "start" then start(rest)
      when "finish" then finish
      when "fork" then in_child(rest)
      else answer(line.chomp, $stdout)
      end
      $stdout.flush
    end
  end
end

Thread.report_on_exception = true
Driver.new.run
exit!(0) # Closes nothing.
