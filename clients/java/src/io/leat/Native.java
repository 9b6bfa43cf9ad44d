package io.leat;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * The functions in C, from the folder native. They check nothing: whoever calls them holds the handle, has not closed
 * it, and passes what C expects. What those return that Java calls often is a number, or an error if it is negative.
 */
final class Native {
  /** As in native/jni.c. */
  private static final int INTERFACE = 2;

  /** A timeout that means: only poll. */
  static final long POLL = -2;

  private Native() {}

  static {
    load();
    if (checkedInterface() != INTERFACE) {
      throw new UnsatisfiedLinkError("libleat_jni.so belongs to another version of leat.jar");
    }
  }

  // ---- Loading --------------------------------------------------------------------------------

  private static void load() {
    try {
      System.loadLibrary("leat_jni"); // From java.library.path.
    } catch (UnsatisfiedLinkError notThere) {
      try {
        loadFromJar();
      } catch (IOException e) {
        UnsatisfiedLinkError error = new UnsatisfiedLinkError("libleat_jni.so: " + e);
        error.initCause(e);
        throw error;
      }
    }
  }

  private static void loadFromJar() throws IOException {
    String machine = System.getProperty("os.arch").equals("amd64") ? "x86_64" : System.getProperty("os.arch");
    String name = "linux-" + machine + "/libleat_jni.so";
    try (InputStream library = Native.class.getResourceAsStream(name)) {
      if (library == null) throw new IOException("not for this machine: the jar has no " + name);
      Path directory = Files.createTempDirectory("leat-"); // Only the user may enter it.
      Path file = directory.resolve("libleat_jni.so");
      try {
        Files.copy(library, file);
        System.load(file.toString());
      } finally { // Once loaded, it needs no name.
        Files.deleteIfExists(file);
        Files.deleteIfExists(directory);
      }
    }
  }

  static byte[] bytes(String text) {
    return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
  }

  static String text(byte[] bytes) {
    return new String(bytes, StandardCharsets.UTF_8);
  }

  // ---- Results --------------------------------------------------------------------------------

  static int code(long result) {
    return result >= 0 ? 0 : (int) (result >>> 32) & Integer.MAX_VALUE;
  }

  static boolean is(long result, ErrorCode code) {
    return result < 0 && code(result) == code.number();
  }

  static long check(long result) {
    if (result < 0) throw LeatException.of(code(result), (int) result);
    return result;
  }

  // ---- jni.c ----------------------------------------------------------------------------------

  static native int checkedInterface();

  static native byte[] version();

  static native int userId();

  static native byte[] describe(int code, int detail);

  static native byte[] errorName(int code);

  static native long close(int kind, long pointer);

  static native long stop(long handle, boolean stopped);

  static native ByteBuffer room(long handle, long size);

  static native long roomAddress(long handle);

  // ---- topic.c --------------------------------------------------------------------------------

  static native long topicCreate(
      byte[] name, long[] options, byte[] fileGroup, byte[] directory, byte[] dataDirectory, boolean mayExist);

  static native long topicOpen(byte[] name, long timeoutNs, byte[] directory, byte[] dataDirectory);

  static native long topicDelete(byte[] name, boolean force, byte[] directory, byte[] dataDirectory);

  static native byte[] topicList(byte[] directory, byte[] dataDirectory);

  static native byte[] topicName(long topic);

  static native byte[] topicJson(long topic);

  static native byte[] topicGroups(long topic);

  static native long topicMaxRecordSize(long topic);

  static native long topicPartitions(long topic);

  static native long[] topicInfo(long topic);

  static native long topicSetMaxCapacity(long topic, long bytes);

  static native long topicShrink(long topic);

  static native long topicRepair(long topic, long timeoutNs);

  // ---- publisher.c ----------------------------------------------------------------------------

  static native long publisher(long topic, long[] options);

  static native long publish(long handle, int size, long timeoutNs);

  static native long publishBatch(long handle, int count, int partition, long timeoutNs);

  static native long publishRecord(long handle, long timeoutNs);

  static native long publishRecordBatch(long handle, int count, int partition, long timeoutNs);

  static native long claim(long handle, long size, long timeoutNs, long[] claimed);

  static native long commit(
      long handle, long data, long size, long offset, long id, long used, ByteBuffer copy);

  static native long abort(long handle, long data, long size, long offset, long id);

  static native long flush(long handle, long timeoutNs);

  static native long requestSync(long handle);

  static native long durableOffset(long handle, int partition);

  static native long lastOffset(long handle);

  static native long publisherMaxRecordSize(long handle);

  static native long publisherPartition(long handle);

  static native long durableFd(long handle);

  static native long roomFd(long handle, int partition);

  // ---- subscriber.c ---------------------------------------------------------------------------

  static native long subscriber(long topic, long[] options);

  static native long read(long handle, int capacity, long timeoutNs, boolean inPlace);

  static native long receive(long handle, int capacity, long timeoutNs);

  static native void copy(long address, byte[] into);

  static native long waitFor(long handle, long timeoutNs);

  static native long waitAny(long[] handles, long timeoutNs);

  static native long waitFd(long handle);

  static native long subscriberOffset(long handle, int partition);

  static native long isLossy(long handle);

  // ---- group.c --------------------------------------------------------------------------------

  static native long group(long topic, byte[] name, long[] options);

  static native long deleteGroup(long topic, byte[] name, boolean force);

  static native byte[] groupName(long group);

  static native byte[] groupDeadLetterTopic(long group);

  static native long[] groupInfo(long group);

  static native long groupSeek(long group, int from, long value, int partition);

  static native long groupPosition(long group, int partition);

  static native long groupReleased(long group, int partition);

  static native long join(long group, long[] options, byte[] name);

  static native long acknowledge(long handle, long at, long state, long position, long entry);

  static native long acknowledgeSome(long handle, long[] deliveries);

  static native long acknowledgeUpTo(long handle, long at, long state, long position, long entry);

  static native long acknowledgeAll(long handle);

  static native long requeue(
      long handle, long at, long state, long position, long entry, long delayNs);

  static native long inFlight(long handle);

  // ---- mirror.c -------------------------------------------------------------------------------

  static native boolean findMapping(long address, long[] range);

  static native ByteBuffer mirror(long of, long size, boolean writable);

  static native long addressOf(ByteBuffer buffer);

  static native void unmap(long address, long size);
}
