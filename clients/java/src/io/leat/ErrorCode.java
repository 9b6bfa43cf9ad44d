package io.leat;

import java.util.Locale;

/** What can go wrong, with the fixed numbers and the names that every client uses. */
public enum ErrorCode {
  // From spec/errors.csv, by tools/errors.py: begin
  /** No error. */
  OK(0),
  /** Invalid argument. */
  INVALID_ARGUMENT(1),
  /** No such topic or group. */
  NOT_FOUND(2),
  /** The topic exists already. */
  EXISTS(3),
  /** In use by another process or handle, or by a claim that is still open. */
  BUSY(4),
  /** Permission denied. */
  PERMISSION(5),
  /** Not a Leat topic of this format version. */
  WRONG_FORMAT(6),
  /** The topic is corrupt: a check on its shared memory failed. */
  CORRUPT(7),
  /** The topic is full. */
  FULL(8),
  /** No room for files, or the archiver cannot write them. */
  NO_SPACE(9),
  /** The record is larger than the topic allows. */
  TOO_LARGE(10),
  /** The deadline passed. */
  TIMEOUT(11),
  /** Stopped on request. */
  STOPPED(12),
  /** The topic was deleted. */
  DELETED(13),
  /** This handle belongs to the parent process: open a new one after fork. */
  FORKED(14),
  /** The claim was revoked because its owner did not run for too long. */
  REVOKED(15),
  /** The topic is full and only this very thread could make room. */
  WOULD_DEADLOCK(16),
  /** The connection point was made with preAllocate: its expansions are fixed. */
  NOT_ALLOWED(17),
  /** No slot for another participant or group is free. */
  TOO_MANY(18),
  /** Not supported by this kernel, file system or version of Leat. */
  UNSUPPORTED(19),
  /** This member holds as many records as its group allows: acknowledge some. */
  IN_FLIGHT_FULL(20),
  /** More records came back, or wait for their key, than the group has room for. */
  REDELIVERY_FULL(21),
  /** That record or claim is not in flight (any more). */
  NOT_IN_FLIGHT(22),
  /** The record was held for longer than the group's lease. */
  LEASE_LOST(23),
  /** The consumer group was deleted. */
  CLOSED(24),
  /** The buffer is too small for the record. */
  BUFFER_TOO_SMALL(25),
  /** A system call failed. */
  IO_ERROR(26),
  /** The topic is read-only: writing to its files failed. */
  READ_ONLY(27),
  /** Published, but not on stable storage in time. */
  NOT_DURABLE(28),
  /** Retention has deleted the group's next record. */
  EXPIRED(29),
  /** A signal interrupted the wait. */
  INTERRUPTED(30),
  /** Out of memory, or at a limit of memory or of mappings. */
  NO_MEMORY(31),
  /** The topic is in memory only: this needs a durable topic. */
  NEEDS_DURABLE(32),
  /** The topic's records carry no time: this needs a topic with timestamps. */
  NEEDS_TIMESTAMPS(33),
  /** The topic's capacity is fixed: this needs a topic with policy grow. */
  NEEDS_GROWING(34),
  /** The topic overwrites its oldest records: only lossy subscribers can read it. */
  NOT_WITH_OVERWRITE(35),
  /** A durable topic cannot have overwrite, grow, retain_all, evict_after, delete_when_unused or in_place. */
  NOT_WITH_DURABLE(36),
  // From spec/errors.csv: end
  ;

  private static final ErrorCode[] ALL = values();

  private final int number;

  ErrorCode(int number) {
    this.number = number;
    if (number != ordinal()) throw new AssertionError(name());
  }

  /** {@return the number, which never changes} */
  public int number() {
    return number;
  }

  /** {@return the name that all clients use, for example {@code "timeout"}} */
  public String text() {
    return name().toLowerCase(Locale.ROOT);
  }

  static ErrorCode of(int number) {
    if (number < 0 || number >= ALL.length) throw new IllegalArgumentException("code " + number);
    return ALL[number];
  }
}
