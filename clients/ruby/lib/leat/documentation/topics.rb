# frozen_string_literal: true

# What `ri` and `rdoc` show of the methods that are written in C. Not loaded.
module Leat
  ##
  # :singleton-method: wait_any
  # :call-seq:
  #   wait_any(subscribers, timeout: nil) -> index
  #
  # The index of a subscriber that may have something to do. Waits for the first.
  #
  # [timeout:] seconds; +nil+ waits for ever, 0 not at all

  # The base of topics, publishers, subscribers, groups and members.
  class Handle
    ##
    # :method: close
    # :call-seq:
    #   close -> nil
    #
    # Ends it. Closing twice does nothing.

    ##
    # :method: closed?
    # :call-seq:
    #   closed? -> true or false
    #
    # Whether close was called.
  end

  # The base of what waits.
  class Stoppable < Handle
    ##
    # :method: stop
    # :call-seq:
    #   stop -> nil
    #
    # Makes waits raise Stopped, now and later, until resume. Any thread.

    ##
    # :method: resume
    # :call-seq:
    #   resume -> nil
    #
    # Allows waits again.

    ##
    # :method: stopped?
    # :call-seq:
    #   stopped? -> true or false
    #
    # Whether waits are stopped.
  end

  # A topic. Several threads may use it at once.
  class Topic < Handle
    ##
    # :singleton-method: create
    # :call-seq:
    #   create(name, **options) -> topic
    #   create(name, **options) { |topic| ... } -> result of the block
    #
    # Creates a topic and opens it. Makes the directory if it is missing. The name is 1 to 200 of the characters
    # A-Z a-z 0-9 . _ -
    #
    # [policy:] what publishing does in a full topic: +:block+ waits, +:fail+ raises Full, +:overwrite+ reuses
    #   the oldest room, +:grow+ adds memory up to a maximum and then waits
    # [capacity_bytes:] per partition; 0 is 8 MiB, of durable topics 32 MiB
    # [segment_bytes:] 0 is an eighth of the capacity; at most 1 GiB
    # [max_capacity_bytes:] policy +:grow+, per partition; 0 is 8 times the capacity
    # [grow_below_bytes:] policy +:grow+: adds memory when no more than this is free; 0 is a segment
    # [partitions:] 1 (the default) to 1024; records of one key are in one partition, in order
    # [participants:] publishers, subscribers and members at a time, 1 to 4096; by default 256
    # [retain_all:] never reuse room; publishing raises Full at the end
    # [single_writer:] every publisher is exclusive
    # [timestamps:] records have the time at which they were published
    # [delete_when_unused:] once it was used, delete it when the last process closes it
    # [revoke_after:] seconds; a claim that is open for longer, while a subscriber waits, is revoked; 0: never
    # [evict_after:] seconds; a gating subscriber that blocks for longer becomes lossy; 0: never
    # [mode:] permission bits of the files; 0600, the default, is required
    # [durable:] +:none+ (the default); +:os+: also on disk, at the latest 10 ms later; +:interval+: also synced
    #   every +sync_interval+; +:fsync+: synced before publishing returns
    # [sync_interval:] seconds, 0.001 to 3600
    # [file_bytes:] durable topics: size of a file with records; by default 64 MiB
    # [retention_bytes:, retention:] durable topics: keep so many bytes, or seconds, on disk; 0: no limit
    # [file_group:] Unix group of the files; by default the caller's
    # [directory:] of the topics; by default +$LEAT_DIR+, else <tt>/dev/shm/leat-UID</tt>
    # [data_directory:] of durable topics; by default +$LEAT_DATA_DIR+, else <tt>$XDG_DATA_HOME/leat</tt>, else
    #   <tt>~/.local/share/leat</tt>

    ##
    # :singleton-method: open_or_create
    # :call-seq:
    #   open_or_create(name, **options) -> topic
    #   open_or_create(name, **options) { |topic| ... } -> result of the block
    #
    # Opens the topic if it exists, whatever its options are; otherwise creates it. Options as of create.

    ##
    # :singleton-method: open
    # :call-seq:
    #   open(name, timeout: 0, directory: nil, data_directory: nil) -> topic
    #
    # Opens a topic, and waits until it was created. Takes a block as create does.
    #
    # [timeout:] seconds; +nil+ waits for ever, 0 not at all
    # [directory:] of the topics; by default +$LEAT_DIR+, else <tt>/dev/shm/leat-UID</tt>
    # [data_directory:] of durable topics; by default +$LEAT_DATA_DIR+, else <tt>$XDG_DATA_HOME/leat</tt>, else
    #   <tt>~/.local/share/leat</tt>

    ##
    # :singleton-method: delete
    # :call-seq:
    #   delete(name, force: false, directory: nil, data_directory: nil) -> nil
    #
    # Deletes a topic and frees its name.
    #
    # [force:] also while it is in use; its users get Deleted
    # [directory:] of the topics; by default +$LEAT_DIR+, else <tt>/dev/shm/leat-UID</tt>
    # [data_directory:] of durable topics; by default +$LEAT_DATA_DIR+, else <tt>$XDG_DATA_HOME/leat</tt>, else
    #   <tt>~/.local/share/leat</tt>

    ##
    # :singleton-method: list
    # :call-seq:
    #   list(directory: nil, data_directory: nil) -> array of names
    #
    # The names of all topics.
    #
    # [directory:] of the topics; by default +$LEAT_DIR+, else <tt>/dev/shm/leat-UID</tt>
    # [data_directory:] of durable topics; by default +$LEAT_DATA_DIR+, else <tt>$XDG_DATA_HOME/leat</tt>, else
    #   <tt>~/.local/share/leat</tt>

    ##
    # :method: publisher
    # :call-seq:
    #   publisher(partition: nil, exclusive: false, acknowledge: nil) -> publisher
    #
    # Makes a Publisher; with a block, yields it and closes it.
    #
    # [partition:] of records without a key; +nil+: in turn
    # [exclusive:] the topic's only publisher, which is faster
    # [acknowledge:] when publishing returns: +:committed+, or +:durable+: the record is on stable storage;
    #   +nil+: as the topic says

    ##
    # :method: subscriber
    # :call-seq:
    #   subscriber(from: :end, partition: nil, gating: true, in_place: false, read: nil, spin: 0.00002,
    #     patience: 0.00002) -> subscriber
    #
    # Makes a Subscriber; with a block, yields it and closes it.
    #
    # [from:] +:end+ (the default), +:beginning+, <tt>{ offset: 5 }</tt>, <tt>{ last: 10 }</tt>, or <tt>{ time:
    #   Time.now - 60 }</tt>
    # [partition:] only this one; +nil+: all
    # [gating:] publishers keep what it has not read; otherwise it may be overtaken
    # [in_place:] not gating, but keeps the segment that it reads instead of copying
    # [read:] +:committed+, or +:durable+: only what is on stable storage; +nil+: as the topic says
    # [spin:] seconds that a wait tries again before it sleeps; by default 0.00002
    # [patience:] seconds that an empty poll pauses after many records; by default 0.00002; 0: none

    ##
    # :method: group
    # :call-seq:
    #   group(name, **options) -> group
    #
    # Opens the consumer group, or creates it; the options apply only then. With a block, yields it and closes
    # it.
    #
    # [from:] +:end+ (the default), +:beginning+, <tt>{ offset: 5 }</tt>, <tt>{ last: 10 }</tt>, or <tt>{ time:
    #   Time.now - 60 }</tt>
    # [mode:] +:at_least_once+ (the default) or +:at_most_once+
    # [by_key:] records of one key go to one member at a time, in order
    # [members:] at a time, 1 to 255; by default 64
    # [in_flight:] records that a member may hold, 1 to 65536; by default 1024
    # [max_deliveries:] then a record goes to the dead-letter topic; at most 65534; 0: no limit
    # [on_expired:] durable topics: where a group goes on whose next record retention has deleted: +:start+ (the
    #   default), +:end+, or +:stop+
    # [lease:] seconds; a record that is held for longer goes to another member; 0: never

    ##
    # :method: find_group
    # :call-seq:
    #   find_group(name) -> group
    #
    # Opens a consumer group that exists.

    ##
    # :method: delete_group
    # :call-seq:
    #   delete_group(name, force: false) -> nil
    #
    # Deletes a consumer group.
    #
    # [force:] also while it has members; they get Closed

    ##
    # :method: group_names
    # :call-seq:
    #   group_names -> array of names
    #
    # The names of its consumer groups.

    ##
    # :method: name
    # :call-seq:
    #   name -> string
    #
    # Its name.

    ##
    # :method: info_json
    # :call-seq:
    #   info_json -> string
    #
    # What <tt>leat topic info --json</tt> prints.

    ##
    # :method: max_record_size
    # :call-seq:
    #   max_record_size -> integer
    #
    # In bytes: key, headers, timestamp and value together, encoded.

    ##
    # :method: partitions
    # :call-seq:
    #   partitions -> integer
    #
    # How many there are.

    ##
    # :method: set_max_capacity
    # :call-seq:
    #   set_max_capacity(bytes) -> nil
    #
    # Policy +:grow+: how far each partition may grow.

    ##
    # :method: shrink
    # :call-seq:
    #   shrink -> integer
    #
    # Policy +:grow+: frees idle memory; how many bytes.

    ##
    # :method: repair
    # :call-seq:
    #   repair(timeout: nil) -> nil
    #
    # Makes a durable topic writable again after its disk had failed.
    #
    # [timeout:] seconds; +nil+ waits for ever, 0 not at all
  end

  # Appends records to a topic. One thread or fiber at a time uses it.
  class Publisher < Stoppable
    ##
    # :method: publish
    # :call-seq:
    #   publish(value, key: nil, headers: nil, partition: nil, timeout: nil) -> offset
    #
    # Publishes one record.
    #
    # [key:] a String
    # [headers:] a Hash of Strings, or an Array of pairs
    # [partition:] by default that of the key, or the publisher's
    # [timeout:] seconds to wait for room, and for stable storage; +nil+: for ever; 0: raises Full

    ##
    # :method: publish_batch
    # :call-seq:
    #   publish_batch(values, partition: nil, timeout: nil) -> offset of the first
    #
    # Publishes Strings, or Hashes with +value:+, +key:+ and +headers:+. They become visible together, and take
    # at most half a segment.
    #
    # [partition:] by default the publisher's; keys choose none
    # [timeout:] as of publish

    ##
    # :method: claim
    # :call-seq:
    #   claim(size, timeout: nil) -> claim
    #   claim(size, timeout: nil) { |claim| ... } -> offset or nil
    #
    # Room to write a value of up to +size+ bytes in place. At the block's end what was written is committed.
    #
    # [timeout:] seconds; +nil+ waits for ever, 0 not at all

    ##
    # :method: flush
    # :call-seq:
    #   flush(timeout: nil) -> nil
    #
    # Waits until all that it published is on stable storage; raises NotDurable if it is not in time.
    #
    # [timeout:] seconds; +nil+ waits for ever, 0 not at all

    ##
    # :method: request_sync
    # :call-seq:
    #   request_sync -> nil
    #
    # Asks for what flush waits for, and does not wait.

    ##
    # :method: durable_offset
    # :call-seq:
    #   durable_offset(partition: nil) -> offset
    #
    # Everything in the partition before this offset is on stable storage.

    ##
    # :method: last_offset
    # :call-seq:
    #   last_offset -> offset or nil
    #
    # Of what was published last with <tt>acknowledge: :durable</tt>.

    ##
    # :method: max_record_size
    # :call-seq:
    #   max_record_size -> integer
    #
    # In bytes: key, headers, timestamp and value together, encoded.

    ##
    # :method: partition
    # :call-seq:
    #   partition -> integer
    #
    # Of records that have no key.
  end

  # Room for one record.
  class Claim
    ##
    # :method: write
    # :call-seq:
    #   write(bytes, at: nil) -> claim
    #
    # Copies bytes into it, behind what was written last, or at a position.

    ##
    # :method: <<
    # :call-seq:
    #   claim << bytes -> claim
    #
    # As write.

    ##
    # :method: commit
    # :call-seq:
    #   commit(size = nil) -> offset
    #
    # Publishes what was written, or the first +size+ bytes.

    ##
    # :method: abort
    # :call-seq:
    #   abort -> nil
    #
    # Gives the room up: subscribers see a Gap.

    ##
    # :method: size
    # :call-seq:
    #   size -> integer
    #
    # Its room in bytes.

    ##
    # :method: offset
    # :call-seq:
    #   offset -> integer
    #
    # That of the record.
  end
end
