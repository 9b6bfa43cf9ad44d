package io.leat;

/** What a participant does. */
public enum Role {
  PUBLISHER,
  EXCLUSIVE_PUBLISHER,
  SUBSCRIBER,
  LOSSY_SUBSCRIBER,
  MEMBER,
  /** One that this version does not know. */
  UNKNOWN;

  static Role of(long number) {
    return number >= 1 && number <= MEMBER.ordinal() + 1 ? values()[(int) number - 1] : UNKNOWN;
  }
}
