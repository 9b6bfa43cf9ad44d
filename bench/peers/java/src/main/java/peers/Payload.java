package peers;

/**
 * The same payloads as bench/harness/payload.hpp: the sequence number in the first and in the last eight
 * bytes, prepared some records ahead in the sender's own memory.
 */
final class Payload {
  private static final int BUFFERS = 8;
  private static final int AHEAD = 4;

  private final int size;
  private final long[] buffers = new long[BUFFERS];
  private long next;
  private long ahead;

  Payload(int size) {
    this.size = size;
    long state = 0x9e3779b97f4a7c15L;  // Any odd number.
    for (int i = 0; i < BUFFERS; i++) {
      buffers[i] = Memory.allocate(size);
      for (int j = 0; j < size; j++) {
        state = state * 6364136223846793005L + 1442695040888963407L;
        Memory.putByte(buffers[i] + j, (byte) (state >> 56));
      }
    }
    while (ahead < AHEAD) prepare();
  }

  private void prepare() {
    long at = buffers[(int) (ahead % BUFFERS)];
    Memory.putLong(at, ahead);
    Memory.putLong(at + size - Long.BYTES, ahead);
    ahead++;
  }

  /** The address of the next record. */
  long next() {
    prepare();
    return buffers[(int) (next++ % BUFFERS)];
  }

  static void check(long address, int length, int size, long sequence) {
    if (length != size || Memory.getLong(address) != sequence
        || Memory.getLong(address + size - Long.BYTES) != sequence) {
      throw new IllegalStateException("record " + sequence + " has the wrong content");
    }
  }
}
