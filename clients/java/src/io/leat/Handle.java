package io.leat;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.AsynchronousCloseException;
import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.spi.AbstractInterruptibleChannel;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongSupplier;

/**
 * What publishers, subscribers and members have in common. One thread at a time uses it, any one; a second one that
 * comes meanwhile gets an {@link IllegalStateException}. Only {@link #stop}, {@link #resume}, {@link #isStopped} and
 * {@link #close} are for other threads.
 */
public abstract class Handle implements AutoCloseable {
  private static final VarHandle STATE;
  private static final int FREE = 0;
  private static final int USED = 1;
  private static final int CLOSED = 2;

  static {
    try {
      STATE = MethodHandles.lookup().findVarHandle(Handle.class, "state", int.class);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  /** Of C. Open while this is used. */
  final long pointer;

  private final Resource resource;
  private final Cleaner.Cleanable cleanable;

  @SuppressWarnings("unused") // By STATE.
  private volatile int state;

  private volatile boolean closing;

  // Under the monitor of the resource.
  private boolean stopped; // By stop().
  private boolean cancelled; // By an interrupt of the thread that waits.
  private boolean isStopped; // What C was told.

  Handle(int kind, long pointer) {
    this.pointer = pointer;
    resource = new Resource(kind, pointer);
    cleanable = Resource.CLEANER.register(this, resource);
  }

  // ---- One thread at a time -------------------------------------------------------------------

  /** Begins a call that uses C, which must end with leave(). */
  final void enter() {
    if (!STATE.compareAndSet(this, FREE, USED)) throw refused();
    if (closing) {
      leave();
      throw refused();
    }
  }

  final void leave() {
    STATE.setRelease(this, FREE);
    Reference.reachabilityFence(this);
  }

  private IllegalStateException refused() {
    return new IllegalStateException(closing ? "it is closed" : "another thread uses it");
  }

  final boolean isClosing() {
    return closing;
  }

  /** The number, or the error as an exception. */
  final long check(long result) {
    if (result >= 0) return result;
    if (closing && Native.is(result, ErrorCode.STOPPED)) throw refused();
    return Native.check(result);
  }

  /** A call that returns a number or an error, and does not wait. */
  final long number(LongSupplier call) {
    enter();
    try {
      return check(call.getAsLong());
    } finally {
      leave();
    }
  }

  /**
   * Closes it. A wait of another thread ends with an {@link IllegalStateException}, and any other call finishes
   * first. Closing again does nothing.
   */
  @Override
  public void close() {
    synchronized (resource) {
      if (closing) return;
      closing = true;
      updateStopped();
    }
    for (int tries = 0; !STATE.compareAndSet(this, FREE, CLOSED); ++tries) {
      if (tries < 100) Thread.onSpinWait();
      else LockSupport.parkNanos(50_000);
    }
    cleanable.clean();
  }

  // ---- Ending waits ---------------------------------------------------------------------------

  private void updateStopped() {
    boolean wanted = closing || stopped || cancelled;
    if (wanted == isStopped || !resource.isOpen()) return;
    isStopped = wanted;
    Native.stop(pointer, wanted);
  }

  private void setStopped(boolean wanted) {
    synchronized (resource) {
      if (closing) throw refused();
      stopped = wanted;
      updateStopped();
    }
  }

  private void setCancelled(boolean wanted) {
    synchronized (resource) {
      cancelled = wanted;
      updateStopped();
    }
  }

  /**
   * Makes waits end with {@link ErrorCode#STOPPED}, now and later, until {@link #resume}. What is available is still
   * delivered. Any thread.
   */
  public void stop() {
    setStopped(true);
  }

  /** Ends {@link #stop}. Any thread. */
  public void resume() {
    setStopped(false);
  }

  /** {@return whether waits are stopped} Any thread. */
  public boolean isStopped() {
    synchronized (resource) {
      if (closing) throw refused();
      return stopped;
    }
  }

  /**
   * Makes a call that may wait in C. An interrupt of this thread stops it: then C's answer is STOPPED, and that of
   * this INTERRUPTED, and the thread stays interrupted.
   */
  final long interruptibly(LongSupplier call) {
    if (VirtualThreads.isCurrent()) return elsewhere(call);
    Waker waker = new Waker();
    long result;
    waker.arm();
    try {
      result = call.getAsLong();
    } finally {
      waker.disarm();
    }
    return waker.isOpen() ? result : afterInterrupt(result);
  }

  /** The same for a virtual thread, which does not keep a thread of the system meanwhile. */
  private long elsewhere(LongSupplier call) {
    Future<Long> answer = VirtualThreads.threads().submit(call::getAsLong);
    boolean isInterrupted = false;
    for (;;) {
      try {
        long result = answer.get();
        if (!isInterrupted) return result;
        Thread.currentThread().interrupt();
        return afterInterrupt(result);
      } catch (InterruptedException e) {
        isInterrupted = true;
        setCancelled(true);
      } catch (ExecutionException e) {
        throw new IllegalStateException(e);
      }
    }
  }

  private long afterInterrupt(long result) {
    setCancelled(false);
    if (Native.is(result, ErrorCode.STOPPED) && !closing && !wasStopped()) {
      throw LeatException.of(ErrorCode.INTERRUPTED);
    }
    return result;
  }

  private boolean wasStopped() {
    synchronized (resource) {
      return stopped;
    }
  }

  /** Thread.interrupt() closes what its thread is blocked on: a channel, which this pretends to be. */
  private final class Waker extends AbstractInterruptibleChannel {
    void arm() {
      begin();
    }

    void disarm() {
      try {
        end(true);
      } catch (ClosedByInterruptException e) {
        // interruptibly() checks whether it is open.
      } catch (AsynchronousCloseException e) {
        throw new AssertionError(e);
      }
    }

    @Override
    protected void implCloseChannel() { // In the thread that interrupts.
      setCancelled(true);
    }
  }

  // ---- What crosses to C ----------------------------------------------------------------------

  // Memory of C, which only this handle's calls use.
  ByteBuffer room = ByteBuffer.allocate(0);
  long roomAddress;

  final void makeRoom(long size) {
    if (size > Integer.MAX_VALUE - 8) throw LeatException.of(ErrorCode.TOO_LARGE);
    room = ByteBuffer.allocate(0);
    room = Native.room(pointer, size).order(ByteOrder.LITTLE_ENDIAN);
    roomAddress = Native.roomAddress(pointer);
  }
}
