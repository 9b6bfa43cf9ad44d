package io.leat;

import java.time.Duration;

/** Options of a new topic. Sizes in bytes; they are rounded up to whole segments and pages. */
public final class TopicOptions {
  final Options values = new Options(19);
  String fileGroup;
  Place place = Place.DEFAULT;

  /** Every option has its default. */
  public TopicOptions() {}

  /**
   * What happens when it is full; {@link Policy#BLOCK} if not set.
   *
   * @param policy the policy
   * @return this
   */
  public TopicOptions policy(Policy policy) {
    values.set(0, policy);
    return this;
  }

  /**
   * Per partition; 8 MiB if not set, durable topics 32 MiB.
   *
   * @param capacityBytes bytes
   * @return this
   */
  public TopicOptions capacityBytes(long capacityBytes) {
    values.setCount(1, capacityBytes, "capacityBytes");
    return this;
  }

  /**
   * An eighth of the capacity if not set; at most 1 GiB.
   *
   * @param segmentBytes bytes
   * @return this
   */
  public TopicOptions segmentBytes(long segmentBytes) {
    values.setCount(2, segmentBytes, "segmentBytes");
    return this;
  }

  /**
   * Policy grow, per partition; 8 times the capacity if not set.
   *
   * @param maxCapacityBytes bytes
   * @return this
   */
  public TopicOptions maxCapacityBytes(long maxCapacityBytes) {
    values.setCount(3, maxCapacityBytes, "maxCapacityBytes");
    return this;
  }

  /**
   * Policy grow: adds memory at so little free; a segment if not set.
   *
   * @param growBelowBytes bytes
   * @return this
   */
  public TopicOptions growBelowBytes(long growBelowBytes) {
    values.setCount(4, growBelowBytes, "growBelowBytes");
    return this;
  }

  /**
   * 1 if not set.
   *
   * @param partitions 1 to 1024
   * @return this
   */
  public TopicOptions partitions(int partitions) {
    values.setCount(5, partitions, "partitions");
    return this;
  }

  /**
   * Publishers, subscribers and members at a time; 256 if not set, at most 4096.
   *
   * @param participants 1 to 4096
   * @return this
   */
  public TopicOptions participants(int participants) {
    values.setCount(6, participants, "participants");
    return this;
  }

  /**
   * Never reuse room; publishing gives {@link ErrorCode#FULL} at the end.
   *
   * @param retainAll true if it shall be so; false is the default
   * @return this
   */
  public TopicOptions retainAll(boolean retainAll) {
    values.set(7, retainAll);
    return this;
  }

  /**
   * Every publisher is exclusive.
   *
   * @param singleWriter true if it shall be so; false is the default
   * @return this
   */
  public TopicOptions singleWriter(boolean singleWriter) {
    values.set(8, singleWriter);
    return this;
  }

  /**
   * Records have timestamps.
   *
   * @param timestamps true if it shall be so; false is the default
   * @return this
   */
  public TopicOptions timestamps(boolean timestamps) {
    values.set(9, timestamps);
    return this;
  }

  /**
   * Once it was used, delete it when the last process closes it.
   *
   * @param deleteWhenUnused true if it shall be so; false is the default
   * @return this
   */
  public TopicOptions deleteWhenUnused(boolean deleteWhenUnused) {
    values.set(10, deleteWhenUnused);
    return this;
  }

  /**
   * Revoke a claim that is open for so long while a subscriber waits; 0: never.
   *
   * @param revokeAfter 0 or more
   * @return this
   */
  public TopicOptions revokeAfter(Duration revokeAfter) {
    values.set(11, revokeAfter, "revokeAfter");
    return this;
  }

  /**
   * Make a gating subscriber lossy that blocks for so long; 0: never.
   *
   * @param evictAfter 0 or more
   * @return this
   */
  public TopicOptions evictAfter(Duration evictAfter) {
    values.set(12, evictAfter, "evictAfter");
    return this;
  }

  /**
   * Permission bits of the files; 0600 is required, and what it is if not set.
   *
   * @param mode the bits, as chmod takes them
   * @return this
   */
  public TopicOptions mode(int mode) {
    values.setCount(13, mode, "mode");
    return this;
  }

  /**
   * What survives what; {@link Durability#NONE} if not set.
   *
   * @param durable how durable it is
   * @return this
   */
  public TopicOptions durable(Durability durable) {
    values.set(14, durable);
    return this;
  }

  /**
   * Of {@link Durability#INTERVAL}; 1 ms to 1 h.
   *
   * @param syncInterval 1 ms to 1 h
   * @return this
   */
  public TopicOptions syncInterval(Duration syncInterval) {
    values.set(15, syncInterval, "syncInterval");
    return this;
  }

  /**
   * Durable topics: size of a file with records; 64 MiB if not set.
   *
   * @param fileBytes bytes
   * @return this
   */
  public TopicOptions fileBytes(long fileBytes) {
    values.setCount(16, fileBytes, "fileBytes");
    return this;
  }

  /**
   * Durable topics: keep so much on disk, in whole files; 0: no limit.
   *
   * @param retentionBytes bytes
   * @return this
   */
  public TopicOptions retentionBytes(long retentionBytes) {
    values.setCount(17, retentionBytes, "retentionBytes");
    return this;
  }

  /**
   * Durable topics: keep records for so long; 0: no limit.
   *
   * @param retention 0 or more
   * @return this
   */
  public TopicOptions retention(Duration retention) {
    values.setCount(18, retention.toMillis(), "retention");
    return this;
  }

  /**
   * Unix group of the files; the caller's if not set.
   *
   * @param fileGroup the name of the group
   * @return this
   */
  public TopicOptions fileGroup(String fileGroup) {
    this.fileGroup = fileGroup;
    return this;
  }

  /**
   * Where the topic is, if not in the default directories.
   *
   * @param place the directories; null is the default
   * @return this
   */
  public TopicOptions place(Place place) {
    this.place = place == null ? Place.DEFAULT : place;
    return this;
  }
}
