package io.leat;

/**
 * A consumer group, whose members share a topic's records. Several threads may use it at once; each member belongs to
 * one. It stays until it is deleted: see {@link Topic#deleteGroup}.
 */
public final class Group extends SharedHandle {
  private final boolean wasCreated;

  Group(long pointer, boolean wasCreated) {
    super(Resource.GROUP, pointer);
    this.wasCreated = wasCreated;
  }

  /** Whether the call that made this object created the group. */
  public boolean wasCreated() {
    return wasCreated;
  }

  /** Makes a member with the default options. */
  public Member join() {
    return join(new MemberOptions());
  }

  /** Makes a member of the group. */
  public Member join(MemberOptions options) {
    byte[] name = Native.bytes(options.name);
    return new Member(number(group -> Native.join(group, options.values.copy(), name)));
  }

  /** Its name. */
  public String name() {
    return with(group -> Native.text(Native.groupName(group)));
  }

  /** The name of the topic for records that fail too often; empty without {@link GroupOptions#maxDeliveries}. */
  public String deadLetterTopic() {
    return with(group -> Native.text(Native.groupDeadLetterTopic(group)));
  }

  /** A snapshot of the group, which holds up nobody. */
  public GroupInfo info() {
    return with(group -> GroupInfo.of(Native.groupInfo(group)));
  }

  /** Moves the group's position in all partitions. Records that members hold stay theirs. */
  public void seek(From to) {
    seek(to, Topic.ANY_PARTITION);
  }

  /** The same in one partition. */
  public void seek(From to, int partition) {
    number(group -> Native.groupSeek(group, to.kind(), to.value(), partition));
  }

  /** The offset of the next record to be taken in a partition. */
  public long position(int partition) {
    return number(group -> Native.groupPosition(group, partition));
  }

  /** How many records of a partition, at least, the group is done with, counted from offset 0. */
  public long released(int partition) {
    return number(group -> Native.groupReleased(group, partition));
  }
}
