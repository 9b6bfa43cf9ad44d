package io.leat;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;

/**
 * A record, or a gap, whose bytes lie in the topic itself. Its buffers are read-only. They are right until the
 * subscriber's next call that reads; whoever keeps one longer may see bytes of other records, but whatever was closed
 * meanwhile, the memory stays.
 */
public final class EntryView {
  private final ByteBuffer base; // Keeps the memory; null: a gap.
  private final int at; // Where the value is.
  private final int valueSize; // Of a gap, this and the key's size are its count, and the next its reason.
  private final int keySize;
  private final int headersSize;
  private final int flags;
  private final int partition;
  private final long offset;

  EntryView(
      ByteBuffer base, int at, int valueSize, int keySize, int headersSize, int flags, int partition,
      long offset) {
    this.base = base;
    this.at = at;
    this.valueSize = valueSize;
    this.keySize = keySize;
    this.headersSize = headersSize;
    this.flags = flags;
    this.partition = partition;
    this.offset = offset;
  }

  /** {@return whether this stands for offsets without a record} */
  public boolean isGap() {
    return base == null;
  }

  /** {@return the record's offset} Of a gap: the first one. */
  public long offset() {
    return offset;
  }

  /** {@return the partition in which it lies} */
  public int partition() {
    return partition;
  }

  /** {@return the value; null for a gap} */
  public ByteBuffer value() {
    return base == null ? null : base.slice(at, valueSize);
  }

  /** {@return the size of the value; 0 for a gap} */
  public int valueSize() {
    return base == null ? 0 : valueSize;
  }

  /** {@return the key; null without one, which is not the same as an empty one} */
  public ByteBuffer key() {
    if ((flags & Reader.HAS_KEY) == 0) return null;
    return base.slice(at - headersSize - keySize, keySize);
  }

  /** {@return the headers, copied} */
  public List<Header> headers() {
    if ((flags & Reader.HAS_HEADERS) == 0) return List.of();
    return Header.decode(base.slice(at - headersSize, headersSize));
  }

  /** {@return when it was published, in milliseconds since 1970; -1 without a timestamp, and for a gap} */
  public long timestampMs() {
    if ((flags & Reader.HAS_TIMESTAMP) == 0) return -1;
    int before = Reader.prefix(keySize, headersSize, flags);
    return base.slice(at - before, 8).order(ByteOrder.LITTLE_ENDIAN).getLong(0);
  }

  /** {@return how many offsets a gap has; 0 for a record} */
  public long gapCount() {
    return base == null ? Reader.gapCount(keySize, valueSize) : 0;
  }

  /** {@return why there is a gap; null for a record} */
  public GapReason gapReason() {
    return base == null ? GapReason.of(headersSize) : null;
  }

  /**
   * The same with bytes of its own. To be called before the subscriber reads again.
   *
   * @return the copy
   */
  public Entry copy() {
    if (base == null) return new Entry(offset, partition, gapCount(), gapReason());
    byte[] key = (flags & Reader.HAS_KEY) == 0 ? null : bytes(at - headersSize - keySize, keySize);
    byte[] headers = (flags & Reader.HAS_HEADERS) == 0 ? null : bytes(at - headersSize, headersSize);
    return new Entry(offset, partition, bytes(at, valueSize), key, headers, timestampMs());
  }

  private byte[] bytes(int position, int size) {
    byte[] copy = new byte[size];
    base.get(position, copy);
    return copy;
  }
}
