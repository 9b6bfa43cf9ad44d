package io.leat;

import java.time.Duration;
import java.util.Arrays;
import java.util.List;

/**
 * Reads a topic. One thread at a time uses it: see {@link Handle}.
 *
 * <pre>{@code
 * for (Entry entry : subscriber.receive(64, null)) {
 *   if (!entry.isGap()) System.out.println(entry.value().length);
 * }
 * }</pre>
 */
public final class Subscriber extends Reader {
  /** The most subscribers that {@link #waitAny} can wait for. */
  public static final int MAX_WAIT_ANY = 64;

  private final Mirrors mirrors;

  Subscriber(long pointer, Mirrors mirrors) {
    super(Resource.SUBSCRIBER, pointer, 32);
    this.mirrors = mirrors;
  }

  // ---- Copies ---------------------------------------------------------------------------------

  /**
   * Up to so many available records and gaps, oldest first within a partition; none if nothing is there.
   *
   * @param limit the most to return, 1 or more
   * @return records and gaps; may be empty
   */
  public List<Entry> poll(int limit) {
    enter();
    try {
      return entries(poll(limit, false));
    } finally {
      leave();
    }
  }

  /**
   * The same, but waits for the first; {@link ErrorCode#TIMEOUT} if none comes.
   *
   * @param limit the most to return, 1 or more
   * @param timeout how long to wait; null waits for as long as it takes
   * @return at least one record or gap
   */
  public List<Entry> receive(int limit, Duration timeout) {
    long timeoutNs = Times.timeout(timeout);
    enter();
    try {
      return entries(read(limit, timeoutNs, false));
    } finally {
      leave();
    }
  }

  /**
   * Waits for the next record or gap.
   *
   * @param timeout how long to wait; null waits for as long as it takes
   * @return the record or gap
   */
  public Entry receive(Duration timeout) {
    return receive(1, timeout).get(0);
  }

  private List<Entry> entries(int count) {
    Entry[] entries = new Entry[count];
    for (int i = 0; i < count; ++i) entries[i] = entry(i);
    List<Entry> list = Arrays.asList(entries);
    handedOut(count);
    return list;
  }

  private int poll(int limit, boolean inPlace) {
    int count = left(limit);
    if (count != 0) return count;
    return delivered(check(Native.read(pointer, reserve(limit), Native.POLL, inPlace)));
  }

  private int read(int limit, long timeoutNs, boolean inPlace) {
    int count = left(limit);
    if (count != 0) return count;
    int capacity = reserve(limit);
    long result = Native.read(pointer, capacity, 0, inPlace);
    if (Native.is(result, ErrorCode.TIMEOUT) && timeoutNs != 0) {
      result = interruptibly(() -> Native.read(pointer, capacity, timeoutNs, inPlace));
    }
    return delivered(check(result));
  }

  // ---- In place -------------------------------------------------------------------------------

  /**
   * As {@link #poll}, but to be read where it lies, until this subscriber reads again.
   *
   * @param limit the most to return, 1 or more
   * @return views of records and gaps; may be empty
   */
  public List<EntryView> pollViews(int limit) {
    enter();
    try {
      return views(poll(limit, true));
    } finally {
      leave();
    }
  }

  /**
   * As {@link #receive(int, Duration)}, but to be read where it lies, until this subscriber reads again. A lossy
   * subscriber that is not {@link SubscriberOptions#inPlace}, and one that reads old records of a durable topic from
   * disk, has copies anyway: then so are these.
   *
   * @param limit the most to return, 1 or more
   * @param timeout how long to wait; null waits for as long as it takes
   * @return at least one view
   */
  public List<EntryView> receiveViews(int limit, Duration timeout) {
    long timeoutNs = Times.timeout(timeout);
    enter();
    try {
      return views(read(limit, timeoutNs, true));
    } finally {
      leave();
    }
  }

  private List<EntryView> views(int count) {
    EntryView[] views = new EntryView[count];
    for (int i = 0; i < count; ++i) views[i] = view(i, mirrors);
    List<EntryView> list = Arrays.asList(views);
    handedOut(count);
    return list;
  }

  // ---- Waiting --------------------------------------------------------------------------------

  /**
   * Waits until {@link #poll} may have something to do. What was read in place stays valid.
   *
   * @param timeout how long to wait; null waits for as long as it takes
   */
  public void await(Duration timeout) {
    waitNanos(Times.timeout(timeout));
  }

  /**
   * Waits until one of the subscribers may have something to do, and returns its index. It uses all of them; an
   * interrupt ends it as it does others.
   *
   * @param subscribers 1 to 64 subscribers, each of them once
   * @param timeout how long to wait; null waits for as long as it takes
   * @return the index of that subscriber
   */
  public static int waitAny(List<Subscriber> subscribers, Duration timeout) {
    long timeoutNs = Times.timeout(timeout);
    Subscriber[] all = subscribers.toArray(new Subscriber[0]); // The list may change meanwhile.
    int count = all.length;
    if (count == 0 || count > MAX_WAIT_ANY) {
      throw new IllegalArgumentException(count + " subscribers: 1 to " + MAX_WAIT_ANY + " can wait together");
    }
    long[] pointers = new long[count];
    int entered = 0;
    try {
      for (; entered < count; ++entered) {
        all[entered].enter();
        pointers[entered] = all[entered].pointer;
      }
      for (int i = 0; i < count; ++i) if (all[i].hasLeft()) return i;
      long result = Native.waitAny(pointers, 0);
      if (Native.is(result, ErrorCode.TIMEOUT) && timeoutNs != 0) {
        result = all[0].interruptibly(() -> Native.waitAny(pointers, timeoutNs));
      }
      for (Subscriber one : all) if (one.isClosing()) one.check(result);
      return (int) Native.check(result);
    } finally {
      for (int i = 0; i < entered; ++i) all[i].leave();
    }
  }

  // ---- Others ---------------------------------------------------------------------------------

  /**
   * {@return the offset of the next record in a partition; 0 if it does not read that partition}
   *
   * @param partition a partition, from 0
   */
  public long offset(int partition) {
    return number(() -> Native.subscriberOffset(pointer, partition));
  }

  /** {@return whether it may be overtaken: it was made lossy, or was evicted} */
  public boolean isLossy() {
    return number(() -> Native.isLossy(pointer)) != 0;
  }
}
