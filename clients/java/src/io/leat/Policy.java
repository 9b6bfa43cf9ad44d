package io.leat;

/** What happens when a topic is full. */
public enum Policy {
  /** Publishers wait for room. */
  BLOCK,
  /** They get {@link ErrorCode#FULL} at once. */
  FAIL,
  /** The room of the oldest records is reused. */
  OVERWRITE,
  /** As {@link #BLOCK}, but memory is added up to a maximum before anybody waits. */
  GROW
}
