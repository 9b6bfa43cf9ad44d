package io.leat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;

/**
 * A snapshot of a topic. Sizes in bytes.
 *
 * @param id tells the topic from earlier and later ones of its name; save it with an offset that you save. All 0: the
 *     topic was made by a version of Leat without ids
 * @param capacityBytes per partition, now; policy grow: of the largest one
 * @param maxCapacityBytes equal to the capacity unless the policy is grow
 * @param revokeAfter 0: never, as with the next
 * @param state durable topics: why nothing is written to disk; {@link ErrorCode#OK}: it is
 * @param stateDetail its errno
 * @param archiverPid 0: no archiver is needed yet
 * @param createdMs milliseconds since 1970
 * @param diskBytes of all its files
 * @param cutBytes what recovery found: bytes and records that were never written whole,
 * @param cutRecords see before
 * @param damaged and offsets whose records cannot be read
 * @param participants those alive now
 */
public record TopicInfo(
    UUID id,
    Policy policy,
    long capacityBytes,
    long maxCapacityBytes,
    long segmentBytes,
    long maxRecordBytes,
    boolean retainAll,
    boolean singleWriter,
    boolean timestamps,
    boolean deleteWhenUnused,
    Duration revokeAfter,
    Duration evictAfter,
    Durability durable,
    ErrorCode state,
    int stateDetail,
    int archiverPid,
    Duration syncInterval,
    long createdMs,
    long fileBytes,
    long retentionBytes,
    Duration retention,
    long diskBytes,
    long cutBytes,
    long cutRecords,
    long damaged,
    List<PartitionInfo> partitions,
    List<ParticipantInfo> participants) {

  /**
   * A snapshot of a partition.
   *
   * @param start oldest offset that can be read
   * @param end offset of the next claim
   * @param capacityBytes current capacity
   * @param usedBytes from the oldest segment that can be read to the end
   * @param written durable topics: everything before can be read from disk,
   * @param durable and everything before is on stable storage
   */
  public record PartitionInfo(
      long start, long end, long capacityBytes, long usedBytes, long written, long durable) {}

  /**
   * A publisher, subscriber or member that is alive.
   *
   * @param pid in its own PID namespace
   * @param offset subscribers: next offset, summed over partitions
   * @param lag subscribers: records not read yet, of all partitions
   * @param blocking others wait for it
   */
  public record ParticipantInfo(int pid, Role role, long offset, long lag, boolean blocking) {}

  /** In the order of native/topic.c. */
  static TopicInfo of(long[] n) {
    int at = 28;
    List<PartitionInfo> partitions = new ArrayList<>();
    for (long i = 0; i < n[24]; ++i, at += 6) {
      partitions.add(
          new PartitionInfo(n[at], n[at + 1], n[at + 2], n[at + 3], n[at + 4], n[at + 5]));
    }
    List<ParticipantInfo> participants = new ArrayList<>();
    for (long i = 0; i < n[25]; ++i, at += 5) {
      participants.add(
          new ParticipantInfo((int) n[at], Role.of(n[at + 1]), n[at + 2], n[at + 3], n[at + 4] != 0));
    }
    return new TopicInfo(
        new UUID(n[26], n[27]), Policy.values()[(int) n[0]], n[1], n[2], n[3], n[4], n[5] != 0, n[6] != 0, n[7] != 0,
        n[8] != 0, Duration.ofNanos(n[9]), Duration.ofNanos(n[10]),
        Durability.values()[(int) n[11]], ErrorCode.of((int) n[12]), (int) n[13], (int) n[14],
        Duration.ofNanos(n[15]), n[16], n[17], n[18], Duration.ofMillis(n[19]), n[20], n[21],
        n[22], n[23], List.copyOf(partitions), List.copyOf(participants));
  }
}
