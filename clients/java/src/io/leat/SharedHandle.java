package io.leat;

import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.LongFunction;
import java.util.function.LongUnaryOperator;

/** What topics and groups have in common: several threads may use them at once. Closing waits for those. */
public abstract class SharedHandle implements AutoCloseable {
  private final ReentrantReadWriteLock lock = new ReentrantReadWriteLock();
  private final long pointer;
  private final Cleaner.Cleanable cleanable;
  private boolean closed; // Under the lock.

  SharedHandle(int kind, long pointer) {
    this.pointer = pointer;
    cleanable = Resource.CLEANER.register(this, new Resource(kind, pointer));
  }

  /** Makes something of the pointer, which stays open meanwhile. */
  final <T> T with(LongFunction<T> call) {
    lock.readLock().lock();
    try {
      if (closed) throw new IllegalStateException("it is closed");
      return call.apply(pointer);
    } finally {
      lock.readLock().unlock();
      Reference.reachabilityFence(this);
    }
  }

  /** Calls what returns a number or an error. */
  final long number(LongUnaryOperator call) {
    lock.readLock().lock();
    try {
      if (closed) throw new IllegalStateException("it is closed");
      return Native.check(call.applyAsLong(pointer));
    } finally {
      lock.readLock().unlock();
      Reference.reachabilityFence(this);
    }
  }

  /** Closes the handle, after calls that other threads make. Closing again does nothing. */
  @Override
  public void close() {
    lock.writeLock().lock();
    try {
      closed = true;
      cleanable.clean();
    } finally {
      lock.writeLock().unlock();
    }
  }
}
