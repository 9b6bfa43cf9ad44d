package io.leat;

import java.lang.ref.Cleaner;

/**
 * The part of a handle that outlives it, until it is closed: by its owner, or by the cleaner's thread when nobody can
 * reach the owner any more. Holding its monitor keeps it open.
 */
final class Resource implements Runnable {
  // As enum kind in native/leat_jni.h.
  static final int TOPIC = 0;
  static final int GROUP = 1;
  static final int PUBLISHER = 2;
  static final int SUBSCRIBER = 3;
  static final int MEMBER = 4;

  static final Cleaner CLEANER = Cleaner.create();

  private final int kind;
  private long pointer; // 0: closed.

  Resource(int kind, long pointer) {
    this.kind = kind;
    this.pointer = pointer;
  }

  synchronized boolean isOpen() {
    return pointer != 0;
  }

  /** Closes. The cleaner calls it once. */
  @Override
  public synchronized void run() {
    if (pointer == 0) return;
    long closed = pointer;
    pointer = 0;
    Native.close(kind, closed);
  }
}
