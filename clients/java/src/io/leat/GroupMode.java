package io.leat;

/** When a record counts as done. */
public enum GroupMode {
  /** Records that were not acknowledged are delivered again. */
  AT_LEAST_ONCE,
  /** Records that a dead member had in its hands are not. */
  AT_MOST_ONCE
}
