package io.leat;

import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;

/**
 * A member of a group. Closing it leaves the group: records that were not acknowledged go to other members. One
 * thread at a time uses it: see {@link Handle}.
 */
public final class Member extends Reader {
  // Of leat_delivery, behind the record.
  private static final int DELIVERIES = 32;
  private static final int STATE = 40;
  private static final int POSITION = 48;
  private static final int ENTRY = 56;

  Member(long pointer) {
    super(Resource.MEMBER, pointer, 64);
  }

  // ---- Receiving ------------------------------------------------------------------------------

  /**
   * Waits for the next record, and holds it; {@link ErrorCode#TIMEOUT} if none comes.
   *
   * @param timeout how long to wait; null waits for as long as it takes
   * @return the delivery
   */
  public Delivery receive(Duration timeout) {
    return receiveBatch(1, timeout).get(0);
  }

  /**
   * Up to so many available records; waits for the first. On durable topics, gaps come too.
   *
   * @param limit the most to return, 1 or more
   * @param timeout how long to wait; null waits for as long as it takes
   * @return at least one delivery
   */
  public List<Delivery> receiveBatch(int limit, Duration timeout) {
    long timeoutNs = Times.timeout(timeout);
    enter();
    try {
      Delivery[] deliveries = new Delivery[read(limit, timeoutNs)];
      for (int i = 0; i < deliveries.length; ++i) deliveries[i] = (Delivery) entry(i);
      List<Delivery> list = Arrays.asList(deliveries);
      handedOut(deliveries.length);
      return list;
    } finally {
      leave();
    }
  }

  private int read(int limit, long timeoutNs) {
    int count = left(limit);
    if (count != 0) return count;
    int capacity = reserve(limit);
    long result = Native.receive(pointer, capacity, 0);
    if (Native.is(result, ErrorCode.TIMEOUT) && timeoutNs != 0) {
      result = interruptibly(() -> Native.receive(pointer, capacity, timeoutNs));
    }
    return delivered(check(result));
  }

  @Override
  Entry make(
      int record, long offset, int partition, byte[] value, byte[] key, byte[] headers, long timestampMs) {
    return new Delivery(
        offset, partition, value, key, headers, timestampMs, room.getInt(record + DELIVERIES),
        room.getLong(record + STATE), room.getLong(record + POSITION), room.getLong(record + ENTRY));
  }

  @Override
  Entry makeGap(long offset, int partition, long count, GapReason reason) {
    return new Delivery(offset, partition, count, reason);
  }

  // ---- Settling -------------------------------------------------------------------------------

  /**
   * Tells the group that the record is done: it is never delivered again.
   *
   * @param delivery what this member received
   */
  public void acknowledge(Delivery delivery) {
    enter();
    try {
      check(Native.acknowledge(pointer, delivery.at, delivery.state, delivery.position, delivery.entry));
    } finally {
      leave();
    }
  }

  /**
   * Acknowledges those of these records that the member holds, in any order, and returns how many. Passes over gaps.
   * An error only if there were records and none was acknowledged.
   *
   * @param deliveries what this member received, gaps included
   * @return how many were acknowledged
   */
  public long acknowledge(Collection<Delivery> deliveries) {
    long[] packed = new long[4 * deliveries.size()];
    int at = 0;
    for (Delivery delivery : deliveries) {
      packed[at++] = delivery.at;
      packed[at++] = delivery.state;
      packed[at++] = delivery.position;
      packed[at++] = delivery.entry;
    }
    return number(() -> Native.acknowledgeSome(pointer, packed));
  }

  /**
   * Acknowledges the record and all that this member received before it, and returns how many.
   *
   * @param delivery what this member received
   * @return how many were acknowledged
   */
  public long acknowledgeUpTo(Delivery delivery) {
    return number(
        () ->
            Native.acknowledgeUpTo(
                pointer, delivery.at, delivery.state, delivery.position, delivery.entry));
  }

  /**
   * Acknowledges all that it holds, and returns how many.
   *
   * @return how many were acknowledged
   */
  public long acknowledgeAll() {
    return number(() -> Native.acknowledgeAll(pointer));
  }

  /**
   * Makes the record available to any member again, at once.
   *
   * @param delivery what this member received
   */
  public void requeue(Delivery delivery) {
    requeue(delivery, Duration.ZERO);
  }

  /**
   * Makes the record available to any member again, after the delay.
   *
   * @param delivery what this member received
   * @param delay how long nobody gets it
   */
  public void requeue(Delivery delivery, Duration delay) {
    long delayNs = Times.nanos(delay, "delay");
    number(
        () ->
            Native.requeue(
                pointer, delivery.at, delivery.state, delivery.position, delivery.entry, delayNs));
  }

  // ---- Others ---------------------------------------------------------------------------------

  /**
   * Waits until {@link #receive} may have something to do.
   *
   * @param timeout how long to wait; null waits for as long as it takes
   */
  public void await(Duration timeout) {
    waitNanos(Times.timeout(timeout));
  }

  /** {@return how many records it holds or has taken for its next calls} */
  public long inFlight() {
    return number(() -> Native.inFlight(pointer));
  }
}
