package io.leat;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * A snapshot of a group.
 *
 * @param lease 0: never
 * @param inFlightLimit for each member
 * @param lag records that no member has taken yet
 * @param inFlight taken or returned, and not acknowledged
 * @param redelivered deliveries after the first
 * @param returned waiting for redelivery or for their key
 * @param deadLetters records that went to the dead-letter topic
 * @param taking {@link ErrorCode#REDELIVERY_FULL}: no room for returned records; otherwise {@link ErrorCode#OK}
 * @param members those alive now
 * @param offsets of the next record to be taken, by partition
 */
public record GroupInfo(
    GroupMode mode,
    boolean byKey,
    int maxDeliveries,
    Duration lease,
    OnExpired onExpired,
    int inFlightLimit,
    long lag,
    long inFlight,
    long redelivered,
    long returned,
    long returnedLimit,
    long deadLetters,
    ErrorCode taking,
    List<MemberInfo> members,
    List<Long> offsets) {

  /**
   * A living member.
   *
   * @param inFlight records that it holds or has taken
   */
  public record MemberInfo(String name, long inFlight, int pid) {}

  /** In the order of native/group.c. */
  static GroupInfo of(long[] n) {
    int at = 15;
    List<MemberInfo> members = new ArrayList<>();
    for (long i = 0; i < n[13]; ++i, at += 10) {
      members.add(new MemberInfo(name(n, at + 2), n[at], (int) n[at + 1]));
    }
    List<Long> offsets = new ArrayList<>();
    for (long i = 0; i < n[14]; ++i) offsets.add(n[at++]);
    return new GroupInfo(
        GroupMode.values()[(int) n[0]], n[1] != 0, (int) n[2], Duration.ofNanos(n[3]),
        OnExpired.values()[(int) n[4]], (int) n[5], n[6], n[7], n[8], n[9], n[10], n[11],
        ErrorCode.of((int) n[12]), List.copyOf(members), List.copyOf(offsets));
  }

  /** The name whose bytes, up to a null byte, are these 8 numbers. */
  private static String name(long[] numbers, int at) {
    ByteBuffer bytes = ByteBuffer.allocate(64).order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < 8; ++i) bytes.putLong(numbers[at + i]);
    int size = 0;
    while (size < 64 && bytes.get(size) != 0) ++size;
    return Native.text(Arrays.copyOf(bytes.array(), size));
  }
}
