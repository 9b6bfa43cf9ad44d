package io.leat;

import java.time.Duration;

/** Options of a subscriber. */
public final class SubscriberOptions {
  final Options values = new Options(8);

  /** Every option has its default. */
  public SubscriberOptions() {}

  /**
   * Where it begins; {@link From#end} if not set.
   *
   * @param from where to begin
   * @return this
   */
  public SubscriberOptions from(From from) {
    values.setFrom(0, from);
    return this;
  }

  /**
   * The only one that it reads; all if not set.
   *
   * @param partition a partition, from 0
   * @return this
   */
  public SubscriberOptions partition(int partition) {
    values.setCount(2, partition, "partition");
    return this;
  }

  /**
   * How far a record must have come to be delivered.
   *
   * @param read the stage
   * @return this
   */
  public SubscriberOptions read(Stage read) {
    values.set(5, read);
    return this;
  }

  /**
   * How long a wait spins before it sleeps; 20 µs if not set.
   *
   * @param spin 0 or more
   * @return this
   */
  public SubscriberOptions spin(Duration spin) {
    values.set(6, spin, "spin");
    return this;
  }

  /**
   * Pause of an empty poll after many records; 0: none; 20 µs if not set.
   *
   * @param patience 0 or more
   * @return this
   */
  public SubscriberOptions patience(Duration patience) {
    values.set(7, patience, "patience");
    return this;
  }

  /**
   * Publishers do not wait for it: it may be overtaken, and gets gaps then. It reads copies.
   *
   * @param lossy true if it shall be so; false is the default
   * @return this
   */
  public SubscriberOptions lossy(boolean lossy) {
    values.set(3, !lossy);
    return this;
  }

  /**
   * Lossy, but pins the segment that it reads instead of copying.
   *
   * @param inPlace true if it shall be so; false is the default
   * @return this
   */
  public SubscriberOptions inPlace(boolean inPlace) {
    values.set(4, inPlace);
    if (inPlace) values.set(3, false);
    return this;
  }
}
