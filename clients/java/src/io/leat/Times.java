package io.leat;

import java.time.Duration;

/** Times as C has them. */
final class Times {
  static final long FOREVER = -1;

  private Times() {}

  /** A timeout; null is forever, as is whatever would take centuries. */
  static long timeout(Duration timeout) {
    return timeout == null ? FOREVER : Math.min(nanos(timeout, "timeout"), Long.MAX_VALUE / 4);
  }

  static long nanos(Duration time, String what) {
    if (time.isNegative()) throw new IllegalArgumentException(what + " below 0: " + time);
    try {
      return time.toNanos();
    } catch (ArithmeticException e) {
      return Long.MAX_VALUE / 4;
    }
  }
}
