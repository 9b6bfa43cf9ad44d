package io.leat;

/** Durable topics: where a group goes on whose next record was deleted by retention. */
public enum OnExpired {
  /** At the oldest record. */
  START,
  /** Behind everything that is there now. */
  END,
  /** Nowhere: members get {@link ErrorCode#EXPIRED} until somebody moves the group. */
  STOP
}
