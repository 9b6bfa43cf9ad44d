package io.leat;

import java.time.Duration;

/** Options of a member. */
public final class MemberOptions {
  final Options values = new Options(2);
  String name;

  /** Every option has its default. */
  public MemberOptions() {}

  /**
   * How long a wait spins before it sleeps; 20 µs if not set.
   *
   * @param spin 0 or more
   * @return this
   */
  public MemberOptions spin(Duration spin) {
    values.set(0, spin, "spin");
    return this;
  }

  /**
   * Pause of an empty receive after many records; 0: none; 20 µs if not set.
   *
   * @param patience 0 or more
   * @return this
   */
  public MemberOptions patience(Duration patience) {
    values.set(1, patience, "patience");
    return this;
  }

  /**
   * Informational; at most 63 bytes.
   *
   * @param name the name
   * @return this
   */
  public MemberOptions name(String name) {
    this.name = name;
    return this;
  }
}
