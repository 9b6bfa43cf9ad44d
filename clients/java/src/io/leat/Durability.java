package io.leat;

/** What survives what. */
public enum Durability {
  /** In memory: gone when the machine restarts. */
  NONE,
  /** Also written to disk: survives all processes. */
  OS,
  /** Also synced to the medium at intervals. */
  INTERVAL,
  /** On the medium before publishing returns. */
  FSYNC
}
