package io.leat;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/**
 * A named value that travels with a record. Names need not be unique, nor be text.
 *
 * @param name its bytes
 * @param value its bytes
 */
public record Header(byte[] name, byte[] value) {
  /**
   * Both as copies.
   *
   * @param name the name
   * @param value the bytes
   */
  public Header {
    name = name.clone();
    value = value.clone();
  }

  /**
   * With a name in UTF-8.
   *
   * @param name the name
   * @param value the bytes
   */
  public Header(String name, byte[] value) {
    this(Native.bytes(name), value);
  }

  /** {@return the name as UTF-8} */
  public String nameText() {
    return Native.text(name);
  }

  /** What the bytes hold. A header that is not complete ends them: other processes may write them meanwhile. */
  static List<Header> decode(ByteBuffer encoded) {
    List<Header> headers = new ArrayList<>();
    ByteBuffer from = encoded.duplicate().order(ByteOrder.LITTLE_ENDIAN);
    while (from.remaining() >= 8) {
      long nameSize = from.getInt() & 0xffffffffL; // Read once.
      long valueSize = from.getInt() & 0xffffffffL;
      if (nameSize + valueSize > from.remaining()) break;
      byte[] name = new byte[(int) nameSize];
      byte[] value = new byte[(int) valueSize];
      from.get(name).get(value);
      headers.add(new Header(name, value));
    }
    return headers;
  }
}
