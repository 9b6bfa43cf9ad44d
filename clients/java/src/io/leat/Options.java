package io.leat;

import java.time.Duration;
import java.util.Arrays;

/** Numbers for C, in its order. Those that were not set keep C's defaults, which Java need not know. */
final class Options {
  private static final long UNSET = Long.MIN_VALUE;

  private final long[] values;

  Options(int count) {
    values = new long[count];
    Arrays.fill(values, UNSET);
  }

  long get(int index) {
    return values[index];
  }

  void set(int index, long value) {
    values[index] = value;
  }

  void set(int index, boolean value) {
    values[index] = value ? 1 : 0;
  }

  void set(int index, Enum<?> value) {
    values[index] = value.ordinal();
  }

  void set(int index, Duration value, String what) {
    values[index] = Times.nanos(value, what);
  }

  void setCount(int index, long value, String what) {
    if (value < 0) throw new IllegalArgumentException(what + " below 0: " + value);
    values[index] = value;
  }

  void setFrom(int index, From from) {
    values[index] = from.kind();
    values[index + 1] = from.value();
  }

  /** What is wrong with a number that was set and is not in the range; null if nothing is. */
  String outside(int index, String option, long least, long most) {
    long given = values[index];
    if (given == UNSET || given >= least && given <= most) return null;
    return option + " is " + given + ", and must be " + least + " to " + most;
  }

  long[] copy() {
    return values.clone();
  }
}
