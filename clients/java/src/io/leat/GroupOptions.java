package io.leat;

import java.time.Duration;

/** Options of a new group. */
public final class GroupOptions {
  final Options values = new Options(10);

  /** Every option has its default. */
  public GroupOptions() {}

  /**
   * Where it begins; {@link From#end} if not set.
   *
   * @param from where to begin
   * @return this
   */
  public GroupOptions from(From from) {
    values.setFrom(0, from);
    return this;
  }

  /**
   * When a record counts as done; {@link GroupMode#AT_LEAST_ONCE} if not set.
   *
   * @param mode whether records of a dead member are delivered again
   * @return this
   */
  public GroupOptions mode(GroupMode mode) {
    values.set(2, mode);
    return this;
  }

  /**
   * Records of one key go to one member at a time, in order.
   *
   * @param byKey true if it shall be so; false is the default
   * @return this
   */
  public GroupOptions byKey(boolean byKey) {
    values.set(3, byKey);
    return this;
  }

  /**
   * At a time; 64 if not set, at most 255.
   *
   * @param members 1 to 255
   * @return this
   */
  public GroupOptions members(int members) {
    values.setCount(4, members, "members");
    return this;
  }

  /**
   * Unacknowledged records that a member may hold; 1024 if not set, at most 65536.
   *
   * @param inFlight 1 to 65536
   * @return this
   */
  public GroupOptions inFlight(int inFlight) {
    values.setCount(5, inFlight, "inFlight");
    return this;
  }

  /**
   * Then a record goes to the dead-letter topic; at most 65534; 0: no limit.
   *
   * @param maxDeliveries 0 to 65534
   * @return this
   */
  public GroupOptions maxDeliveries(int maxDeliveries) {
    values.setCount(6, maxDeliveries, "maxDeliveries");
    return this;
  }

  /**
   * Where it goes on if retention deleted its next record.
   *
   * @param onExpired where it goes on
   * @return this
   */
  public GroupOptions onExpired(OnExpired onExpired) {
    values.set(7, onExpired);
    return this;
  }

  /**
   * A record that is held for longer goes to another member; 0: never.
   *
   * @param lease 0 or more
   * @return this
   */
  public GroupOptions lease(Duration lease) {
    values.set(8, lease, "lease");
    return this;
  }
}
