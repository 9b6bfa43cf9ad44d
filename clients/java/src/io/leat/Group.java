package io.leat;

/**
 * A consumer group, whose members share a topic's records. Several threads may use it at once; each member belongs to
 * one. It stays until it is deleted: see {@link Topic#deleteGroup}.
 */
public final class Group extends SharedHandle {
  private static final int MAX_MEMBER_NAME = 63; // bytes

  private final boolean wasCreated;

  Group(long pointer, boolean wasCreated) {
    super(Resource.GROUP, pointer);
    this.wasCreated = wasCreated;
  }

  /** {@return whether the call that made this object created the group} */
  public boolean wasCreated() {
    return wasCreated;
  }

  /**
   * Makes a member with the default options.
   *
   * @return the member, to be closed
   */
  public Member join() {
    return join(new MemberOptions());
  }

  /**
   * Makes a member of the group.
   *
   * @param options what to change of the defaults
   * @return the member, to be closed
   */
  public Member join(MemberOptions options) {
    byte[] name = Native.bytes(options.name);
    if (name != null && name.length > MAX_MEMBER_NAME) {
      String message = "name of a member has " + name.length + " bytes, and at most " + MAX_MEMBER_NAME + " are allowed";
      throw LeatException.of(ErrorCode.INVALID_ARGUMENT, 0, message);
    }
    return new Member(number(group -> Native.join(group, options.values.copy(), name)));
  }

  /** {@return its name} */
  public String name() {
    return with(group -> Native.text(Native.groupName(group)));
  }

  /**
   * {@return the name of the topic for records that fail too often; empty without {@link GroupOptions#maxDeliveries}}
   */
  public String deadLetterTopic() {
    return with(group -> Native.text(Native.groupDeadLetterTopic(group)));
  }

  /** {@return a snapshot of the group, which holds up nobody} */
  public GroupInfo info() {
    return with(group -> GroupInfo.of(Native.groupInfo(group)));
  }

  /**
   * Moves the group's position in all partitions. Records that members hold stay theirs.
   *
   * @param to where to go
   */
  public void seek(From to) {
    seek(to, Topic.ANY_PARTITION);
  }

  /**
   * The same in one partition.
   *
   * @param to where to go
   * @param partition a partition, from 0
   */
  public void seek(From to, int partition) {
    number(group -> Native.groupSeek(group, to.kind(), to.value(), partition));
  }

  /**
   * {@return the offset of the next record to be taken in a partition}
   *
   * @param partition a partition, from 0
   */
  public long position(int partition) {
    return number(group -> Native.groupPosition(group, partition));
  }

  /**
   * {@return how many records of a partition, at least, the group is done with, counted from offset 0}
   *
   * @param partition a partition, from 0
   */
  public long released(int partition) {
    return number(group -> Native.groupReleased(group, partition));
  }
}
