package io.leat;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Mirrors of a topic's memory: mappings of our own, as buffers, each of which is unmapped when the last slice of it
 * is unreachable. So reading an old slice never ends the program, whatever was closed. The library maps a topic
 * once and keeps that as long as a handle is open; so an address stands for the same bytes meanwhile. Several
 * threads.
 */
final class Mirrors {
  /** A mapping covers addresses of the topic's own one, beginning with `begin`. */
  record Window(long begin, long end, ByteBuffer buffer) {}

  private static final long STEP = 1L << 30; // Twice as much fits into a buffer, and a record into half of it.
  private static final int MANY = 256;
  private static final AtomicInteger mapped = new AtomicInteger();

  private final boolean writable;
  private volatile Window[] windows = {};
  private volatile int skip; // So many addresses are not looked for, because the last one was not there.

  Mirrors(boolean writable) {
    this.writable = writable;
  }

  /** The window that these addresses lie in; null if they are no shared memory, or cannot be mapped. */
  Window find(long begin, long end) {
    if (begin == end) return null; // Nothing lies nowhere; a neighbour's memory may begin here.
    Window found = lookUp(begin, end);
    return found != null ? found : add(begin, end);
  }

  private Window lookUp(long begin, long end) {
    for (Window window : windows) {
      if (begin >= window.begin && end <= window.end) return window;
    }
    return null;
  }

  private synchronized Window add(long begin, long end) {
    Window found = lookUp(begin, end);
    if (found != null) return found;
    if (skip > 0) {
      --skip;
      return null;
    }
    Window added = map(begin, end);
    if (added == null) {
      skip = 4096; // What follows is probably the same, and looking takes long.
      return null;
    }
    Window[] all = Arrays.copyOf(windows, windows.length + 1);
    all[all.length - 1] = added;
    windows = all;
    return added;
  }

  private Window map(long begin, long end) {
    long[] range = new long[2];
    if (!Native.findMapping(begin, range)) return null;
    long from = range[0] + (begin - range[0]) / STEP * STEP;
    long to = Math.min(range[1], from + 2 * STEP - 4096);
    if (end > to) return null;
    // Nothing else tells the collector that there is much to gain.
    if (mapped.get() % MANY == MANY - 1) System.gc();
    ByteBuffer buffer = Native.mirror(from, to - from, writable);
    if (buffer == null) return null;
    mapped.incrementAndGet();
    long address = Native.addressOf(buffer);
    long size = to - from;
    Resource.CLEANER.register(
        buffer,
        () -> {
          Native.unmap(address, size);
          mapped.decrementAndGet();
        });
    // A slice keeps what it is of.
    return new Window(from, to, writable ? buffer : buffer.asReadOnlyBuffer());
  }

  /** For tests. */
  static int mapped() {
    return mapped.get();
  }
}
