package io.leat;

/** How far a record has come. */
public enum Stage {
  /** Durable with {@link Durability#FSYNC}, otherwise committed. */
  DEFAULT,
  /** Subscribers can see it. */
  COMMITTED,
  /** Durable topics: it is on stable storage. */
  DURABLE
}
