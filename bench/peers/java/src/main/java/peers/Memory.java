package peers;

import java.lang.reflect.Field;
import sun.misc.Unsafe;

/** Memory outside the heap, by address, in which all rivals on the JVM keep their records. */
final class Memory {
  private static final Unsafe UNSAFE = find();
  private static final int LOOP_LIMIT = 256;  // Above this size the library's copy is faster.

  private Memory() {}

  private static Unsafe find() {
    try {
      Field field = Unsafe.class.getDeclaredField("theUnsafe");
      field.setAccessible(true);
      return (Unsafe) field.get(null);
    } catch (ReflectiveOperationException error) {
      throw new ExceptionInInitializerError(error);
    }
  }

  static long allocate(long bytes) {
    long address = UNSAFE.allocateMemory(bytes);
    UNSAFE.setMemory(address, bytes, (byte) 0);
    return address;
  }

  static long getLong(long address) {
    return UNSAFE.getLong(address);
  }

  static void putLong(long address, long value) {
    UNSAFE.putLong(address, value);
  }


  static void putByte(long address, byte value) {
    UNSAFE.putByte(address, value);
  }

  /** At least 8 bytes. */
  static void copy(long from, long to, int length) {
    if (length > LOOP_LIMIT) {
      UNSAFE.copyMemory(from, to, length);
      return;
    }
    int last = length - Long.BYTES;
    for (int i = 0; i < last; i += Long.BYTES) {
      UNSAFE.putLong(to + i, UNSAFE.getLong(from + i));
    }
    UNSAFE.putLong(to + last, UNSAFE.getLong(from + last));  // May overlap the piece before it.
  }
}
