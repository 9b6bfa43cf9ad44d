package peers;

import java.util.Set;

/** The command line: ROLE --dir DIR --size N … */
final class Options {
  final String role;
  String directory = "";
  int size = 100;
  long records = 1000;
  long warmUp = 100;

  Options(String[] arguments) {
    if (arguments.length == 0) throw new IllegalArgumentException("usage: ROLE --dir DIR …");
    role = arguments[0];
    Set<String> ignored = Set.of("--batch", "--index", "--senders", "--workers");
    for (int i = 1; i < arguments.length; i++) {
      String name = arguments[i];
      if (name.equals("--spin")) continue;  // All of them spin anyway.
      if (i + 1 == arguments.length) throw new IllegalArgumentException(name + " needs a value");
      String value = arguments[++i];
      switch (name) {
        case "--dir" -> directory = value;
        case "--size" -> size = Integer.parseInt(value);
        case "--records" -> records = Long.parseLong(value);
        case "--warm-up" -> warmUp = Long.parseLong(value);
        default -> {
          if (!ignored.contains(name)) throw new IllegalArgumentException("unknown option " + name);
        }
      }
    }
    if (directory.isEmpty()) throw new IllegalArgumentException("--dir is missing");
    if (size < Long.BYTES) throw new IllegalArgumentException("--size is at least 8");
  }

  /** A victim and its survivor both publish. */
  boolean isOnlyPublisher() {
    return !role.equals("victim") && !role.equals("survivor");
  }
}
