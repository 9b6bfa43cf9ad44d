package io.leat;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongUnaryOperator;

/**
 * Publishes to a topic. One thread at a time uses it: see {@link Handle}. Without a timeout, calls wait for as long
 * as it takes until a full topic has room.
 *
 * <p>A call into C costs as much as several records, so batches are the fast way.
 */
public final class Publisher extends Handle {
  private static final int ROOM = 1 << 12;
  private static final int KEPT_ROOM = 1 << 22; // More is freed by the next call.

  // leat_bytes, leat_new_record and leat_new_header.
  private static final int BYTES = 16;
  private static final int RECORD = 48;
  private static final int HEADER = 32;

  private final Mirrors mirrors;
  private final boolean waitsForSync; // Whatever it publishes.
  private final long maxRecordSize;

  Publisher(long pointer, Mirrors mirrors, boolean waitsForSync) {
    super(Resource.PUBLISHER, pointer);
    this.mirrors = mirrors;
    this.waitsForSync = waitsForSync;
    maxRecordSize = Native.check(Native.publisherMaxRecordSize(pointer));
    makeRoom(ROOM);
  }

  // ---- One record -----------------------------------------------------------------------------

  /**
   * Publishes a value and returns its offset.
   *
   * @param value the bytes
   * @return the offset of the record
   */
  public long publish(byte[] value) {
    return publish(value, null);
  }

  /**
   * The same with a timeout, which includes the wait for stable storage if the publisher acknowledges when durable.
   *
   * @param value the bytes
   * @param timeout how long to wait; null waits for as long as it takes
   * @return the offset of the record
   */
  public long publish(byte[] value, Duration timeout) {
    return publish(value, Times.timeout(timeout));
  }

  private long publish(byte[] value, long timeoutNs) {
    int size = value.length;
    if (size > maxRecordSize) throw tooLarge();
    enter();
    try {
      reserve(size);
      room.put(0, value);
      return send(timeoutNs, left -> Native.publish(pointer, size, left));
    } finally {
      leave();
    }
  }

  /**
   * Publishes a record with key, headers and partition, and returns its offset.
   *
   * @param record the record
   * @return the offset of the record
   */
  public long publish(NewRecord record) {
    return publish(record, null);
  }

  /**
   * The same with a timeout.
   *
   * @param record the record
   * @param timeout how long to wait; null waits for as long as it takes
   * @return the offset of the record
   */
  public long publish(NewRecord record, Duration timeout) {
    long timeoutNs = Times.timeout(timeout);
    List<Packed> packed = List.of(new Packed(record));
    enter();
    try {
      pack(packed);
      return send(timeoutNs, left -> Native.publishRecord(pointer, left));
    } finally {
      leave();
    }
  }

  private LeatException tooLarge() {
    return LeatException.of(ErrorCode.TOO_LARGE.number(), (int) maxRecordSize);
  }

  // What can be done at once needs no protection from interrupts, which costs more than a record. A call that waits for
  // stable storage must not be repeated.
  private long send(long timeoutNs, LongUnaryOperator call) {
    if (waitsForSync) return check(interruptibly(() -> call.applyAsLong(timeoutNs)));
    return check(orWait(timeoutNs, call));
  }

  private long orWait(long timeoutNs, LongUnaryOperator call) {
    long result = call.applyAsLong(0);
    if (result >= 0 || timeoutNs == 0) return result;
    if (!Native.is(result, ErrorCode.FULL) && !Native.is(result, ErrorCode.TIMEOUT)) return result;
    return interruptibly(() -> call.applyAsLong(timeoutNs));
  }

  // ---- Batches --------------------------------------------------------------------------------

  /**
   * Publishes the values as one batch, and returns the offset of the first: they become visible together, with
   * consecutive offsets, in one partition. Together they take at most half a segment.
   *
   * @param values the values; null is not allowed
   * @return the offset of the first
   */
  public long publishBatch(List<byte[]> values) {
    return publishBatch(values, Topic.ANY_PARTITION, null);
  }

  /**
   * The same with a timeout.
   *
   * @param values the values; null is not allowed
   * @param timeout how long to wait; null waits for as long as it takes
   * @return the offset of the first
   */
  public long publishBatch(List<byte[]> values, Duration timeout) {
    return publishBatch(values, Topic.ANY_PARTITION, timeout);
  }

  /**
   * The same in one partition; -1 is the publisher's.
   *
   * @param values the values; null is not allowed
   * @param partition a partition, or -1
   * @param timeout how long to wait; null waits for as long as it takes
   * @return the offset of the first
   */
  public long publishBatch(List<byte[]> values, int partition, Duration timeout) {
    long timeoutNs = Times.timeout(timeout);
    byte[][] all = values.toArray(new byte[0][]); // The list is the caller's code, and may change meanwhile.
    enter();
    try {
      int count = packValues(all);
      return send(timeoutNs, left -> Native.publishBatch(pointer, count, partition, left));
    } finally {
      leave();
    }
  }

  private int packValues(byte[][] values) {
    int count = values.length;
    long size = (long) BYTES * count;
    long at = size;
    for (byte[] value : values) size += value.length;
    reserve(size);
    int index = 0;
    for (byte[] value : values) {
      putBytes(index, value, (int) at);
      index += BYTES;
      at += value.length;
    }
    return count;
  }

  /**
   * Publishes records as one batch, and returns the offset of the first. Keys select no partition.
   *
   * @param records the records
   * @return the offset of the first
   */
  public long publishRecordBatch(List<NewRecord> records) {
    return publishRecordBatch(records, Topic.ANY_PARTITION, null);
  }

  /**
   * The same with a timeout, in one partition; -1 is the publisher's.
   *
   * @param records the records
   * @param partition a partition, or -1
   * @param timeout how long to wait; null waits for as long as it takes
   * @return the offset of the first
   */
  public long publishRecordBatch(List<NewRecord> records, int partition, Duration timeout) {
    long timeoutNs = Times.timeout(timeout);
    List<Packed> all = new ArrayList<>();
    for (NewRecord record : records) all.add(new Packed(record));
    enter();
    try {
      int count = pack(all);
      return send(timeoutNs, left -> Native.publishRecordBatch(pointer, count, partition, left));
    } finally {
      leave();
    }
  }

  // ---- What lies in the room ------------------------------------------------------------------

  private void reserve(long size) {
    // A batch takes at most half a segment, and what describes it to C less than eight times as much.
    if (size > KEPT_ROOM && size / 8 > maxRecordSize) throw tooLarge();
    int capacity = room.capacity();
    if (size <= capacity && (capacity <= KEPT_ROOM || size > KEPT_ROOM)) return;
    makeRoom(Math.max(size, Math.min(2L * capacity, KEPT_ROOM)));
  }

  /** Writes leat_bytes at `index`, and what they name at `at`; null names nothing. */
  private void putBytes(int index, byte[] bytes, int at) {
    room.putLong(index, bytes == null ? 0 : roomAddress + at);
    room.putLong(index + 8, bytes == null ? 0 : bytes.length);
    if (bytes != null) room.put(at, bytes);
  }

  private static int size(byte[] bytes) {
    return bytes == null ? 0 : bytes.length;
  }

  /** What a record is now: its owner may change it meanwhile, and C reads the room as it is. */
  private static final class Packed {
    final byte[] value;
    final byte[] key;
    final Header[] headers;
    final int partition;

    Packed(NewRecord record) {
      value = record.value;
      key = record.key;
      headers = record.headers.toArray(new Header[0]);
      partition = record.partition;
    }
  }

  /** Writes all leat_new_record, then all leat_new_header, then the bytes. */
  private int pack(List<Packed> records) {
    int count = records.size();
    long headerCount = 0;
    long size = 0;
    for (Packed record : records) {
      size += (long) record.value.length + size(record.key);
      for (Header header : record.headers) size += (long) header.name().length + header.value().length;
      headerCount += record.headers.length;
    }
    long bytesBegin = (long) RECORD * count + HEADER * headerCount;
    reserve(bytesBegin + size);
    int index = 0;
    int header = RECORD * count;
    int at = (int) bytesBegin;
    for (Packed record : records) {
      putBytes(index, record.value, at);
      at += record.value.length;
      putBytes(index + 16, record.key, at);
      at += size(record.key);
      room.putLong(index + 32, record.headers.length == 0 ? 0 : roomAddress + header);
      room.putInt(index + 40, record.headers.length);
      room.putInt(index + 44, record.partition);
      index += RECORD;
      for (Header one : record.headers) {
        putBytes(header, one.name(), at);
        at += one.name().length;
        putBytes(header + 16, one.value(), at);
        at += one.value().length;
        header += HEADER;
      }
    }
    return count;
  }

  // ---- Claims ---------------------------------------------------------------------------------

  /**
   * Claims room for a value, to be written in place. A publisher has at most one open claim.
   *
   * @param size bytes of the value, at most
   * @return the open claim
   */
  public Claim claim(int size) {
    return claim(size, (Duration) null);
  }

  /**
   * The same with a timeout.
   *
   * @param size bytes of the value, at most
   * @param timeout how long to wait; null waits for as long as it takes
   * @return the open claim
   */
  public Claim claim(int size, Duration timeout) {
    if (size < 0) throw new IllegalArgumentException("size below 0: " + size);
    long timeoutNs = Times.timeout(timeout);
    long[] claimed = new long[4];
    enter();
    try {
      check(orWait(timeoutNs, left -> Native.claim(pointer, size, left, claimed)));
      return open(claimed, size);
    } finally {
      leave();
    }
  }

  private Claim open(long[] claimed, int size) {
    try {
      Mirrors.Window window = mirrors.find(claimed[0], claimed[0] + size);
      if (window != null) {
        int at = (int) (claimed[0] - window.begin());
        return new Claim(this, claimed, window.buffer().slice(at, size), null);
      }
      ByteBuffer copy = ByteBuffer.allocateDirect(size);
      return new Claim(this, claimed, copy.slice(), copy);
    } catch (Throwable e) { // No memory.
      Native.abort(pointer, claimed[0], claimed[1], claimed[2], claimed[3]);
      throw e;
    }
  }

  /**
   * Claims room, lets the writer fill it, commits it and returns its offset. An exception aborts it. The writer may
   * commit fewer bytes itself, or abort.
   *
   * @param <E> what the writer may throw
   * @param size bytes of the value, at most
   * @param writer writes the value; it may commit less than all
   * @return the offset of the record
   * @throws E what the writer threw, after the claim was aborted
   */
  public <E extends Exception> long claim(int size, Claim.Writer<E> writer) throws E {
    return claim(size, null, writer);
  }

  /**
   * The same with a timeout.
   *
   * @param <E> what the writer may throw
   * @param size bytes of the value, at most
   * @param timeout how long to wait; null waits for as long as it takes
   * @param writer writes the value; it may commit less than all
   * @return the offset of the record
   * @throws E what the writer threw, after the claim was aborted
   */
  public <E extends Exception> long claim(int size, Duration timeout, Claim.Writer<E> writer) throws E {
    try (Claim claim = claim(size, timeout)) {
      writer.write(claim);
      if (claim.isOpen()) claim.commit();
      return claim.offset();
    }
  }

  // ---- Stable storage -----------------------------------------------------------------------------

  /**
   * Durable topics: waits until everything that this publisher has published is on stable storage.
   *
   * @param timeout how long to wait; null waits for as long as it takes
   */
  public void flush(Duration timeout) {
    long timeoutNs = Times.timeout(timeout);
    enter();
    try {
      check(interruptibly(() -> Native.flush(pointer, timeoutNs)));
    } finally {
      leave();
    }
  }

  /** The same, for as long as it takes. */
  public void flush() {
    flush(null);
  }

  /** Asks for the same, and does not wait; see {@link #durableOffset}. */
  public void requestSync() {
    number(() -> Native.requestSync(pointer));
  }

  /**
   * Durable topics: the offset of the publisher's partition before which everything is on stable storage. Otherwise 0.
   *
   * @return the offset; 0 for topics that are not durable
   */
  public long durableOffset() {
    return durableOffset(Topic.ANY_PARTITION);
  }

  /**
   * The same of any partition.
   *
   * @param partition a partition, from 0
   * @return the offset; 0 for topics that are not durable
   */
  public long durableOffset(int partition) {
    return number(() -> Native.durableOffset(pointer, partition));
  }

  /**
   * The offset of the record, or the last of the batch, that was published last and acknowledged when durable, with or
   * without an error of the disk.
   *
   * @return the offset
   */
  public long lastOffset() {
    return number(() -> Native.lastOffset(pointer));
  }

  // ---- Others ---------------------------------------------------------------------------------

  /** {@return the largest record in bytes: key, headers, timestamp and value together, encoded} */
  public long maxRecordSize() {
    return maxRecordSize;
  }

  /** {@return the partition of records that have no key} */
  public int partition() {
    return (int) number(() -> Native.publisherPartition(pointer));
  }

  /**
   * Durable topics: a descriptor that becomes readable when a durable offset may have moved, or the topic was deleted;
   * {@link #durableOffset} makes it unreadable until then. It belongs to the publisher.
   *
   * @return the descriptor
   */
  public int durableFd() {
    return (int) number(() -> Native.durableFd(pointer));
  }

  /**
   * A descriptor that becomes readable when there may be room in a full partition (-1: the publisher's), or the topic
   * was deleted. It belongs to the publisher.
   *
   * @param partition a partition, or -1
   * @return the descriptor
   */
  public int roomFd(int partition) {
    return (int) number(() -> Native.roomFd(pointer, partition));
  }
}
