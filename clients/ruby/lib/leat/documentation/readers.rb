# frozen_string_literal: true

# What `ri` and `rdoc` show of the methods that are written in C. Not loaded.
module Leat
  # Reads a topic. One thread or fiber at a time uses it.
  class Subscriber < Stoppable
    ##
    # :method: poll
    # :call-seq:
    #   poll(limit = 64) -> array
    #
    # What is there now, oldest first: Record and Gap.

    ##
    # :method: receive
    # :call-seq:
    #   receive(timeout: nil) -> record or gap
    #
    # The next entry.
    #
    # [timeout:] seconds; +nil+ waits for ever, 0 not at all

    ##
    # :method: receive_batch
    # :call-seq:
    #   receive_batch(limit = 64, timeout: nil) -> array
    #
    # Up to +limit+ entries. Waits for the first.
    #
    # [timeout:] seconds; +nil+ waits for ever, 0 not at all

    ##
    # :method: read_values
    # :call-seq:
    #   read_values(limit = 64, timeout: 0) -> array
    #
    # The values alone, as Strings, and Gaps.
    #
    # [timeout:] seconds; +nil+ waits for ever, 0 not at all

    ##
    # :method: view
    # :call-seq:
    #   view(limit = 64, timeout: nil) { |batch| ... } -> result of the block
    #
    # Yields an Array of RecordView and Gap, to be read in place until the block ends.
    #
    # [timeout:] seconds; +nil+ waits for ever, 0 not at all

    ##
    # :method: wait
    # :call-seq:
    #   wait(timeout: nil) -> nil
    #
    # Until poll may have something to do.
    #
    # [timeout:] seconds; +nil+ waits for ever, 0 not at all

    ##
    # :method: wait_fd
    # :call-seq:
    #   wait_fd -> integer
    #
    # A descriptor that is readable when there may be something; then poll until there is nothing.

    ##
    # :method: offset
    # :call-seq:
    #   offset(partition: 0) -> integer
    #
    # Of the next record.

    ##
    # :method: lossy?
    # :call-seq:
    #   lossy? -> true or false
    #
    # Whether publishers may overtake it.
  end

  # An open consumer group. Several threads may use it at once.
  class Group < Handle
    ##
    # :method: join
    # :call-seq:
    #   join(name: nil, spin: 0.00002, patience: 0.00002) -> member
    #
    # Makes a Member; with a block, yields it and closes it.
    #
    # [name:] for people, at most 63 bytes
    # [spin:] seconds that a wait tries again before it sleeps; by default 0.00002
    # [patience:] seconds that an empty poll pauses after many records; by default 0.00002; 0: none

    ##
    # :method: info
    # :call-seq:
    #   info -> hash
    #
    # A snapshot.

    ##
    # :method: name
    # :call-seq:
    #   name -> string
    #
    # Its name.

    ##
    # :method: dead_letter_topic
    # :call-seq:
    #   dead_letter_topic -> string
    #
    # Empty without +max_deliveries+.

    ##
    # :method: created?
    # :call-seq:
    #   created? -> true or false
    #
    # Whether the call that returned it created the group.

    ##
    # :method: seek
    # :call-seq:
    #   seek(to, partition: nil) -> nil
    #
    # Moves the group's position: as +from:+ of Topic#subscriber.

    ##
    # :method: position
    # :call-seq:
    #   position(partition: 0) -> offset
    #
    # Of the next record to be taken.

    ##
    # :method: released
    # :call-seq:
    #   released(partition: 0) -> integer
    #
    # How many records, at least, the group is done with.
  end

  # A member of a group. One thread or fiber at a time uses it.
  class Member < Stoppable
    ##
    # :method: receive
    # :call-seq:
    #   receive(timeout: nil) -> delivery or gap
    #
    # The next Delivery, or (durable topics) Gap.
    #
    # [timeout:] seconds; +nil+ waits for ever, 0 not at all

    ##
    # :method: receive_batch
    # :call-seq:
    #   receive_batch(limit = 64, timeout: nil) -> array
    #
    # Up to +limit+ deliveries. Waits for the first.
    #
    # [timeout:] seconds; +nil+ waits for ever, 0 not at all

    ##
    # :method: acknowledge
    # :call-seq:
    #   acknowledge(delivery or array) -> integer
    #
    # They are done. How many were this member's.

    ##
    # :method: acknowledge_up_to
    # :call-seq:
    #   acknowledge_up_to(delivery) -> integer
    #
    # It, and all received before it, are done; how many.

    ##
    # :method: acknowledge_all
    # :call-seq:
    #   acknowledge_all -> integer
    #
    # All that it has returned is done; how many.

    ##
    # :method: requeue
    # :call-seq:
    #   requeue(delivery, delay: 0) -> nil
    #
    # Any member gets it again, after so many seconds.

    ##
    # :method: wait
    # :call-seq:
    #   wait(timeout: nil) -> nil
    #
    # Until receive may have something to do.
    #
    # [timeout:] seconds; +nil+ waits for ever, 0 not at all

    ##
    # :method: wait_fd
    # :call-seq:
    #   wait_fd -> integer
    #
    # A descriptor that is readable when there may be something; then receive until Timeout.

    ##
    # :method: in_flight
    # :call-seq:
    #   in_flight -> integer
    #
    # How many records it holds or has taken for its next calls.
  end

  # A record, copied.
  class Record
    ##
    # :method: value
    # :call-seq:
    #   value -> string
    #
    # The bytes: binary and frozen.

    ##
    # :method: key
    # :call-seq:
    #   key -> string or nil
    #
    # Its key.

    ##
    # :method: headers
    # :call-seq:
    #   headers -> array
    #
    # Pairs of a name and a value.

    ##
    # :method: offset
    # :call-seq:
    #   offset -> integer
    #
    # Its number in the partition.

    ##
    # :method: partition
    # :call-seq:
    #   partition -> integer
    #
    # The number of its partition.

    ##
    # :method: timestamp_ms
    # :call-seq:
    #   timestamp_ms -> integer or nil
    #
    # Milliseconds since 1970.

    ##
    # :method: gap?
    # :call-seq:
    #   gap? -> false
    #
    # A Gap answers true.

    ##
    # :method: inspect
    # :call-seq:
    #   inspect -> string
    #
    # For people.
  end

  # A record, copied, that a member holds until it is acknowledged or requeued.
  class Delivery < Record
    ##
    # :method: deliveries
    # :call-seq:
    #   deliveries -> integer
    #
    # 1: the first delivery.
  end

  # Offsets that will not be delivered.
  class Gap
    ##
    # :method: offset
    # :call-seq:
    #   offset -> integer
    #
    # The first one.

    ##
    # :method: count
    # :call-seq:
    #   count -> integer
    #
    # How many offsets.

    ##
    # :method: partition
    # :call-seq:
    #   partition -> integer
    #
    # The number of the partition.

    ##
    # :method: reason
    # :call-seq:
    #   reason -> symbol
    #
    # Such as +:aborted+ or +:overwritten+.

    ##
    # :method: gap?
    # :call-seq:
    #   gap? -> true
    #
    # A Record answers false.

    ##
    # :method: inspect
    # :call-seq:
    #   inspect -> string
    #
    # For people.
  end

  # A record where it lies in the topic.
  class RecordView
    ##
    # :method: value
    # :call-seq:
    #   value -> string
    #
    # A copy of the bytes.

    ##
    # :method: key
    # :call-seq:
    #   key -> string or nil
    #
    # Its key.

    ##
    # :method: headers
    # :call-seq:
    #   headers -> array
    #
    # Pairs of a name and a value.

    ##
    # :method: offset
    # :call-seq:
    #   offset -> integer
    #
    # Its number in the partition.

    ##
    # :method: partition
    # :call-seq:
    #   partition -> integer
    #
    # The number of its partition.

    ##
    # :method: timestamp_ms
    # :call-seq:
    #   timestamp_ms -> integer or nil
    #
    # Milliseconds since 1970.

    ##
    # :method: gap?
    # :call-seq:
    #   gap? -> false
    #
    # A Gap answers true.

    ##
    # :method: size
    # :call-seq:
    #   size -> integer
    #
    # Of the value, in bytes.

    ##
    # :method: getbyte
    # :call-seq:
    #   getbyte(index) -> integer or nil
    #
    # One byte of the value.

    ##
    # :method: byteslice
    # :call-seq:
    #   byteslice(start, length) -> string or nil
    #
    # A copy of a part of the value.

    ##
    # :method: value?
    # :call-seq:
    #   value?(bytes) -> true or false
    #
    # Whether the value is equal.
  end

  # What the library returned. There is a class for each code: NotFound, Full, Timeout, ...
  class Error < StandardError
    ##
    # :method: code
    # :call-seq:
    #   code -> integer
    #
    # Its number.

    ##
    # :method: name
    # :call-seq:
    #   name -> string
    #
    # Its name, such as +not_found+.

    ##
    # :method: detail
    # :call-seq:
    #   detail -> integer
    #
    # The errno of the system call that failed, or the most bytes allowed, or 0.
  end
end
