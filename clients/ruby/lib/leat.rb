# frozen_string_literal: true

# Leat: topics in shared memory, which processes publish to and read from directly.
#
#     topic = Leat::Topic.open_or_create("orders")
#     topic.publisher { |publisher| publisher.publish("hello", key: "customer-7") }
#     topic.subscriber(from: :beginning) { |subscriber| p subscriber.receive(timeout: 1) }
#
# README.md says more.
require "json"
require_relative "leat/leat"

module Leat
  # A topic. Several threads may use it at once.
  class Topic
    # What `leat topic info --json` prints, as a Hash.
    def info = JSON.parse(info_json)
  end

  # What has a descriptor that is readable when there may be something to read.
  module Awaitable
    # For IO.select: a descriptor of its own, which close() closes.
    def to_io
      @io ||= begin
        mine = IO.for_fd(wait_fd, "r", autoclose: false)
        mine.dup
      end
    end

    def close
      super
      return unless @io

      @io.close
      @io = nil
    end
  end
  private_constant :Awaitable

  # Delivers one entry after the other, until waits are stopped or it is closed.
  module Deliverable
    include Enumerable

    def each
      return to_enum(:each) unless block_given?

      while (entry = receive_unless_stopped)
        yield entry
      end
      self
    end

    private

    def receive_unless_stopped
      receive
    rescue Stopped
      nil
    end
  end
  private_constant :Deliverable

  class Subscriber
    prepend Awaitable
    include Deliverable
  end

  class Member
    prepend Awaitable
    include Deliverable
  end
end
