package io.leat;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/** A record to publish: {@code new NewRecord(value).key(key).header("name", value)}. Its bytes are not copied here. */
public final class NewRecord {
  final byte[] value;
  byte[] key;
  int partition = Topic.ANY_PARTITION;
  List<Header> headers = List.of();

  /**
   * A record with a value and nothing else.
   *
   * @param value the bytes
   */
  public NewRecord(byte[] value) {
    this.value = Objects.requireNonNull(value);
  }

  /**
   * The key, which also selects the partition. An empty one is a key too; null is none.
   *
   * @param key the key, or null
   * @return this
   */
  public NewRecord key(byte[] key) {
    this.key = key;
    return this;
  }

  /**
   * One more header.
   *
   * @param header the header
   * @return this
   */
  public NewRecord header(Header header) {
    if (headers.isEmpty()) headers = new ArrayList<>();
    headers.add(Objects.requireNonNull(header));
    return this;
  }

  /**
   * One more header.
   *
   * @param name the name
   * @param value the bytes
   * @return this
   */
  public NewRecord header(String name, byte[] value) {
    return header(new Header(name, value));
  }

  /**
   * Overrides the partition that the key selects.
   *
   * @param partition a partition, from 0
   * @return this
   */
  public NewRecord partition(int partition) {
    if (partition < 0) throw new IllegalArgumentException("partition below 0: " + partition);
    this.partition = partition;
    return this;
  }
}
