package io.leat;

import java.time.Duration;

/** Options of a new group. */
public final class GroupOptions {
  final Options values = new Options(10);

  /** Where it begins; {@link From#end} if not set. */
  public GroupOptions from(From from) {
    values.setFrom(0, from);
    return this;
  }

  /** When a record counts as done; {@link GroupMode#AT_LEAST_ONCE} if not set. */
  public GroupOptions mode(GroupMode mode) {
    values.set(2, mode);
    return this;
  }

  /** Records of one key go to one member at a time, in order. */
  public GroupOptions byKey(boolean byKey) {
    values.set(3, byKey);
    return this;
  }

  /** At a time; 64 if not set, at most 255. */
  public GroupOptions members(int members) {
    values.setCount(4, members, "members");
    return this;
  }

  /** Unacknowledged records that a member may hold; 1024 if not set, at most 65536. */
  public GroupOptions inFlight(int inFlight) {
    values.setCount(5, inFlight, "inFlight");
    return this;
  }

  /** Then a record goes to the dead-letter topic; at most 65534; 0: no limit. */
  public GroupOptions maxDeliveries(int maxDeliveries) {
    values.setCount(6, maxDeliveries, "maxDeliveries");
    return this;
  }

  /** Where it goes on if retention deleted its next record. */
  public GroupOptions onExpired(OnExpired onExpired) {
    values.set(7, onExpired);
    return this;
  }

  /** A record that is held for longer goes to another member; 0: never. */
  public GroupOptions lease(Duration lease) {
    values.set(8, lease, "lease");
    return this;
  }
}
