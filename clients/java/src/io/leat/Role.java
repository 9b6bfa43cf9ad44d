package io.leat;

/** What a participant does. */
public enum Role {
  /** A publisher beside which others may exist. */
  PUBLISHER,
  /** The topic's only publisher. */
  EXCLUSIVE_PUBLISHER,
  /** A subscriber for which publishers keep what it has not read. */
  SUBSCRIBER,
  /** A subscriber that may be overtaken. */
  LOSSY_SUBSCRIBER,
  /** A member of a consumer group. */
  MEMBER,
  /** One that this version does not know. */
  UNKNOWN;

  static Role of(long number) {
    return number >= 1 && number <= MEMBER.ordinal() + 1 ? values()[(int) number - 1] : UNKNOWN;
  }
}
