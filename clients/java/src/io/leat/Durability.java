package io.leat;

/** What survives what. */
public enum Durability {
  /** In memory: gone when the machine restarts. */
  NONE,
  /** Also written to disk: survives all processes. */
  OS,
  /** Also synced to stable storage at intervals. */
  INTERVAL,
  /** On stable storage before publishing returns. */
  FSYNC
}
