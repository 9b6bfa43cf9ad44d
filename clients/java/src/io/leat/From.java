package io.leat;

import java.time.Instant;

/** Where a subscriber or a group begins. */
public final class From {
  private static final From END = new From(0, 0);
  private static final From BEGINNING = new From(1, 0);

  private final int kind; // LEAT_FROM_...
  private final long value;

  private From(int kind, long value) {
    this.kind = kind;
    this.value = value;
  }

  /**
   * Only records claimed from now on.
   *
   * @return that position
   */
  public static From end() {
    return END;
  }

  /**
   * The oldest record that can be read.
   *
   * @return that position
   */
  public static From beginning() {
    return BEGINNING;
  }

  /**
   * The record with this offset.
   *
   * @param offset an offset, from 0
   * @return that position
   */
  public static From offset(long offset) {
    return number(2, offset, "offset");
  }

  /**
   * The last so many records of each partition.
   *
   * @param count how many records
   * @return that position
   */
  public static From last(long count) {
    return number(3, count, "count");
  }

  /**
   * The first record not older than this, on topics with timestamps.
   *
   * @param time a time since 1970
   * @return that position
   */
  public static From time(Instant time) {
    return number(4, Math.max(0, time.toEpochMilli()), "time");
  }

  private static From number(int kind, long value, String what) {
    if (value < 0) throw new IllegalArgumentException(what + " below 0: " + value);
    return new From(kind, value);
  }

  int kind() {
    return kind;
  }

  long value() {
    return value;
  }
}
