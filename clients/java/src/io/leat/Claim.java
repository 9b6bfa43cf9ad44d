package io.leat;

import java.nio.ByteBuffer;

/**
 * Room for one record in the topic itself. Until it is committed or aborted, subscribers wait at it. It is used as
 * its publisher is: by one thread at a time.
 *
 * <pre>{@code
 * try (Claim claim = publisher.claim(8)) {
 *   claim.data().putLong(number);
 *   claim.commit();
 * } // Without commit, as after an exception, this aborts.
 * }</pre>
 */
public final class Claim implements AutoCloseable {
  /** Writes a claim. */
  @FunctionalInterface
  public interface Writer<E extends Exception> {
    /**
     * Writes the value. What it throws aborts the claim.
     *
     * @param claim the room; it is committed whole unless this commits it
     * @throws E what it likes
     */
    void write(Claim claim) throws E;
  }

  private final Publisher publisher;
  private final long address;
  private final long size;
  private final long offset;
  private final long id;
  private final ByteBuffer data;
  private final ByteBuffer copy; // What data is of, if it does not lie in the topic.
  private boolean isOpen = true; // While the publisher is used by this thread.

  Claim(Publisher publisher, long[] claimed, ByteBuffer data, ByteBuffer copy) {
    this.publisher = publisher;
    address = claimed[0];
    size = claimed[1];
    offset = claimed[2];
    id = claimed[3];
    this.data = data;
    this.copy = copy;
  }

  /**
   * {@return where to write the value; uninitialised} Not to be touched after commit or abort: it is the memory of all
   * processes, and whoever does that overwrites other records.
   */
  public ByteBuffer data() {
    if (!isOpen) throw LeatException.of(ErrorCode.NOT_IN_FLIGHT);
    return data;
  }

  /** {@return how many bytes were claimed} */
  public int size() {
    return (int) size;
  }

  /** {@return the record's offset} */
  public long offset() {
    return offset;
  }

  /** Publishes all bytes. Never waits. */
  public void commit() {
    commit((int) size);
  }

  /**
   * Publishes the first bytes, so many.
   *
   * @param used how many bytes, at most {@link #size}
   */
  public void commit(int used) {
    if (used < 0) throw new IllegalArgumentException("size below 0: " + used);
    publisher.enter();
    try {
      if (!isOpen) throw LeatException.of(ErrorCode.NOT_IN_FLIGHT);
      long result = Native.commit(publisher.pointer, address, size, offset, id, used, copy);
      isOpen = Native.is(result, ErrorCode.INVALID_ARGUMENT);
      Native.check(result);
    } finally {
      publisher.leave();
    }
  }

  /** Gives the room up: subscribers see a gap. */
  public void abort() {
    publisher.enter();
    try {
      if (!isOpen) throw LeatException.of(ErrorCode.NOT_IN_FLIGHT);
      isOpen = false;
      Native.check(Native.abort(publisher.pointer, address, size, offset, id));
    } finally {
      publisher.leave();
    }
  }

  /** {@return whether it was neither committed nor aborted} */
  public boolean isOpen() {
    return isOpen;
  }

  /** Aborts unless it was committed or aborted, or its publisher was closed. */
  @Override
  public void close() {
    if (isOpen && !publisher.isClosing()) abort();
  }
}
