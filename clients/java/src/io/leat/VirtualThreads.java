package io.leat;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Virtual threads (JDK 21 and later) share a few threads of the system, and one that sleeps in C keeps its own: as
 * many waits as processors, and nobody runs who could end them. So their waits sleep in threads of this pool.
 */
final class VirtualThreads {
  private static final MethodHandle IS_VIRTUAL = isVirtual(); // Null: this Java has none.

  private VirtualThreads() {}

  private static MethodHandle isVirtual() {
    try {
      return MethodHandles.lookup()
          .findVirtual(Thread.class, "isVirtual", MethodType.methodType(boolean.class));
    } catch (ReflectiveOperationException e) {
      return null;
    }
  }

  static boolean isCurrent() {
    if (IS_VIRTUAL == null) return false;
    try {
      return (boolean) IS_VIRTUAL.invokeExact(Thread.currentThread());
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  /** Made by the first wait of a virtual thread. */
  private static final class Pool {
    static final ExecutorService THREADS =
        new ThreadPoolExecutor(
            0, Integer.MAX_VALUE, 5, TimeUnit.SECONDS, new SynchronousQueue<>(),
            task -> {
              Thread thread = new Thread(task, "leat-wait");
              thread.setDaemon(true);
              return thread;
            });
  }

  static ExecutorService threads() {
    return Pool.THREADS;
  }
}
