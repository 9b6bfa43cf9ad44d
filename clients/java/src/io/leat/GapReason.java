package io.leat;

import java.util.Locale;

/** Why offsets hold no record. */
public enum GapReason {
  /** The publisher aborted its claim. */
  ABORTED,
  /** The publisher died between claim and commit. */
  DIED,
  /** The publisher did not run for longer than the topic's {@code revokeAfter}. */
  REVOKED,
  /** A lossy subscriber was overtaken, or began below the oldest record. */
  OVERWRITTEN,
  /** Durable topics: a checksum on disk does not match. */
  DAMAGED,
  /** Durable topics: the machine failed before they were on disk. */
  LOST,
  /** One that this version does not know. */
  UNKNOWN;

  private static final GapReason[] ALL = values();

  /** {@return the name that all clients use, for example {@code "aborted"}} */
  public String text() {
    return name().toLowerCase(Locale.ROOT);
  }

  static GapReason of(int number) {
    return number >= 1 && number < ALL.length ? ALL[number - 1] : UNKNOWN;
  }
}
