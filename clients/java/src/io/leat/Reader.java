package io.leat;

import java.nio.ByteBuffer;

/** What subscribers and members have in common: batches that C has written into the room. */
public abstract class Reader extends Handle {
  // LEAT_RECORD_...
  static final int HAS_KEY = 1;
  static final int HAS_TIMESTAMP = 2;
  static final int HAS_HEADERS = 4;
  static final int IS_GAP = 8;

  // leat_record. A leat_delivery begins with one.
  private static final int VALUE = 0;
  private static final int OFFSET = 8;
  private static final int VALUE_SIZE = 16;
  private static final int KEY_SIZE = 20;
  private static final int HEADERS_SIZE = 24;
  private static final int PARTITION = 28;
  private static final int FLAGS = 30;

  static final int MAX_LIMIT = 1 << 16;
  private static final int PACKED_BYTES = 1 << 16;

  private final int stride; // From one to the next.

  // Entries in the room that C has delivered and the caller does not have yet: nothing is lost if there is no memory
  // for them, because the next call that reads returns them.
  private int first;
  private int left;

  Reader(int kind, long pointer, int stride) {
    super(kind, pointer);
    this.stride = stride;
  }

  /** How many entries are left of an earlier call, at most the limit; 0: ask C. */
  final int left(int limit) {
    if (limit <= 0) throw new IllegalArgumentException("limit below 1: " + limit);
    return Math.min(limit, left);
  }

  /** C has put so many entries into the room. */
  final int delivered(long count) {
    first = 0;
    left = (int) count;
    return left;
  }

  /** The caller gets so many of them. */
  final void handedOut(int count) {
    first += count;
    left -= count;
  }

  final boolean hasLeft() {
    return left > 0;
  }

  /** How many to ask C for. The room has place for so many, and for the bytes of small records behind them. */
  final int reserve(int limit) {
    int capacity = Math.min(limit, MAX_LIMIT);
    int wanted = capacity * stride + PACKED_BYTES;
    if (room.capacity() < wanted) makeRoom(wanted);
    return capacity;
  }

  final Entry entry(int index) {
    int record = (first + index) * stride;
    long value = room.getLong(record + VALUE);
    long offset = room.getLong(record + OFFSET);
    int valueSize = room.getInt(record + VALUE_SIZE);
    int keySize = room.getInt(record + KEY_SIZE);
    int headersSize = room.getInt(record + HEADERS_SIZE);
    int partition = room.getShort(record + PARTITION) & 0xffff;
    int flags = room.getShort(record + FLAGS);
    if ((flags & IS_GAP) != 0) {
      return makeGap(offset, partition, gapCount(keySize, valueSize), GapReason.of(headersSize));
    }
    byte[] copy = bytes(value, valueSize);
    if (flags == 0) return make(record, offset, partition, copy, null, null, -1);
    byte[] headers = (flags & HAS_HEADERS) == 0 ? null : bytes(value - headersSize, headersSize);
    byte[] key = (flags & HAS_KEY) == 0 ? null : bytes(value - headersSize - keySize, keySize);
    long timestampMs = -1;
    if ((flags & HAS_TIMESTAMP) != 0) {
      byte[] encoded = bytes(value - prefix(keySize, headersSize, flags), 8);
      timestampMs = ByteBuffer.wrap(encoded).order(room.order()).getLong();
    }
    return make(record, offset, partition, copy, key, headers, timestampMs);
  }

  Entry make(
      int record, long offset, int partition, byte[] value, byte[] key, byte[] headers, long timestampMs) {
    return new Entry(offset, partition, value, key, headers, timestampMs);
  }

  Entry makeGap(long offset, int partition, long count, GapReason reason) {
    return new Entry(offset, partition, count, reason);
  }

  private byte[] bytes(long address, int size) {
    byte[] copy = new byte[size];
    long position = address - roomAddress;
    if (position >= 0 && position < room.capacity()) {
      room.get((int) position, copy);
    } else {
      Native.copy(address, copy); // Not packed.
    }
    return copy;
  }

  /** The record in place: in a mirror, or else copied. */
  final EntryView view(int index, Mirrors mirrors) {
    int record = (first + index) * stride;
    long value = room.getLong(record + VALUE);
    long offset = room.getLong(record + OFFSET);
    int valueSize = room.getInt(record + VALUE_SIZE);
    int keySize = room.getInt(record + KEY_SIZE);
    int headersSize = room.getInt(record + HEADERS_SIZE);
    int partition = room.getShort(record + PARTITION) & 0xffff;
    int flags = room.getShort(record + FLAGS);
    if ((flags & IS_GAP) != 0) {
      return new EntryView(null, 0, valueSize, keySize, headersSize, 0, partition, offset);
    }
    int before = prefix(keySize, headersSize, flags);
    Mirrors.Window window = mirrors.find(value - before, value + valueSize);
    ByteBuffer base;
    int at;
    if (window != null) {
      base = window.buffer();
      at = (int) (value - window.begin());
    } else {
      byte[] copy = new byte[before + valueSize];
      Native.copy(value - before, copy);
      base = ByteBuffer.wrap(copy).asReadOnlyBuffer();
      at = before;
    }
    return new EntryView(base, at, valueSize, keySize, headersSize, flags, partition, offset);
  }

  static long gapCount(int high, int low) {
    return (long) high << 32 | low & 0xffffffffL;
  }

  /** How many bytes before the value belong to the record. */
  static int prefix(int keySize, int headersSize, int flags) {
    int before = keySize + headersSize;
    if ((flags & HAS_TIMESTAMP) == 0) return before;
    return before + 8 + ((flags & HAS_KEY) != 0 ? 4 : 0) + ((flags & HAS_HEADERS) != 0 ? 4 : 0);
  }

  /**
   * A descriptor that becomes readable when there may be something to read; then read until there is nothing. It is
   * also readable while waits are stopped. It belongs to this handle.
   *
   * @return the descriptor
   */
  public int waitFd() {
    enter();
    try {
      return (int) check(Native.waitFd(pointer));
    } finally {
      leave();
    }
  }

  final void waitNanos(long timeoutNs) {
    enter();
    try {
      if (hasLeft()) return;
      check(timeoutNs == 0 ? Native.waitFor(pointer, 0) : interruptibly(() -> Native.waitFor(pointer, timeoutNs)));
    } finally {
      leave();
    }
  }
}
