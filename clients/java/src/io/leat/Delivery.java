package io.leat;

/**
 * A record that a member holds until it is acknowledged or requeued, or (durable topics) a gap, which nobody holds.
 */
public final class Delivery extends Entry {
  private final int deliveries;
  // What C knows it by.
  final long at;
  final long state;
  final long position;
  final long entry;

  Delivery(
      long offset, int partition, byte[] value, byte[] key, byte[] headers, long timestampMs,
      int deliveries, long state, long position, long entry) {
    super(offset, partition, value, key, headers, timestampMs);
    this.deliveries = deliveries;
    this.at = partition;
    this.state = state;
    this.position = position;
    this.entry = entry;
  }

  Delivery(long offset, int partition, long gapCount, GapReason reason) {
    super(offset, partition, gapCount, reason);
    deliveries = 0;
    at = partition | (long) Reader.IS_GAP << 16;
    state = 0;
    position = 0;
    entry = 0;
  }

  /** {@return how often it was delivered: 1 is the first time; at most 65535} 0: a gap. */
  public int deliveries() {
    return deliveries;
  }
}
