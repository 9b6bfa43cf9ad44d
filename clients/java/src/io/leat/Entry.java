package io.leat;

import java.nio.ByteBuffer;
import java.util.List;

/** A record as delivered, or a gap: offsets that will not be delivered. Its bytes are its own. */
public class Entry {
  private final long offset;
  private final int partition;
  private final byte[] value; // Null: a gap.
  private final byte[] key;
  private final byte[] headers; // Encoded; null without.
  private final long number; // The timestamp, or how many offsets.
  private final GapReason reason;

  Entry(long offset, int partition, byte[] value, byte[] key, byte[] headers, long timestampMs) {
    this.offset = offset;
    this.partition = partition;
    this.value = value;
    this.key = key;
    this.headers = headers;
    number = timestampMs;
    reason = null;
  }

  Entry(long offset, int partition, long gapCount, GapReason reason) {
    this.offset = offset;
    this.partition = partition;
    value = null;
    key = null;
    headers = null;
    number = gapCount;
    this.reason = reason;
  }

  /** {@return whether this stands for offsets without a record} */
  public final boolean isGap() {
    return value == null;
  }

  /** {@return the record's offset} Of a gap: the first one. */
  public final long offset() {
    return offset;
  }

  /** {@return the partition in which it lies} */
  public final int partition() {
    return partition;
  }

  /** {@return the value; null for a gap} Not a copy: always the same array. */
  public final byte[] value() {
    return value;
  }

  /** {@return the key; null without one, which is not the same as an empty one} */
  public final byte[] key() {
    return key;
  }

  /** {@return the headers, decoded anew by each call} */
  public final List<Header> headers() {
    return headers == null ? List.of() : Header.decode(ByteBuffer.wrap(headers));
  }

  /** {@return when it was published, in milliseconds since 1970; -1 without a timestamp, and for a gap} */
  public final long timestampMs() {
    return reason == null ? number : -1;
  }

  /** {@return how many offsets a gap has; 0 for a record} */
  public final long gapCount() {
    return reason == null ? 0 : number;
  }

  /** {@return why there is a gap; null for a record} */
  public final GapReason gapReason() {
    return reason;
  }

  @Override
  public final String toString() {
    return isGap()
        ? "gap of " + number + " at " + offset + " in partition " + partition + ": " + reason.text()
        : "record " + offset + " in partition " + partition + " of " + value.length + " bytes";
  }
}
