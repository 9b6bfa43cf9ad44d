package io.leat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.Supplier;

/** What a call is about, so that its exception can name the thing and the cause, which a code alone cannot. */
record Subject(String action, String name, Place place, Options created, boolean isTopic) {
  /** A topic that is opened or deleted. */
  static Subject topic(String action, String name, Place place) {
    return new Subject(action + " topic", name, place, null, true);
  }

  static Subject newTopic(String action, String name, TopicOptions options) {
    return new Subject(action + " topic", name, options.place, options.values, true);
  }

  static Subject group(String action, String name) {
    return new Subject(action + " group", name, null, null, false);
  }

  static Subject newGroup(String name, GroupOptions options) {
    return new Subject("open group", name, null, options.values, false);
  }

  /** Makes a call; its exception becomes a sentence about this. */
  <T> T explain(Supplier<T> call) {
    try {
      return call.get();
    } catch (LeatException e) {
      String start = name.length() <= 200 ? name : name.substring(0, 200) + "…";
      throw LeatException.of(e.code(), e.detail(), "cannot " + action + " '" + start + "': " + reason(e));
    }
  }

  private String reason(LeatException e) {
    boolean creates = created != null && isTopic;
    switch (e.code()) {
      case UNSUPPORTED:
        if (!name.contains("://")) break;
        return "that is the address of a broker, and this client opens topics of this machine only";
      case INVALID_ARGUMENT:
        if (!isValid()) return "a name is 1 to 200 letters, digits, dots, underscores and dashes";
        String wrong = created == null ? null : isTopic ? wrongOfTopic() : wrongOfGroup();
        if (wrong != null) return wrong;
        if (creates) return "its options contradict each other, or one is out of its range";
        break;
      case NOT_FOUND:
        if (creates) return missing();
        if (place != null) return "there is no such topic in " + directory();
        break;
      default:
        break;
    }
    return place == null ? e.getMessage() : e.getMessage() + ", in " + directory();
  }

  private boolean isValid() {
    return name.matches("[A-Za-z0-9._-]{1,200}") && !name.equals(".") && !name.equals("..");
  }

  // The indices are those of TopicOptions and GroupOptions.
  private String wrongOfTopic() {
    String wrong = created.outside(5, "partitions", 1, 1024);
    if (wrong == null) wrong = created.outside(6, "participants", 1, 4096);
    if (wrong == null) wrong = created.outside(1, "capacityBytes", 0, 1L << 40);
    return wrong != null ? wrong : created.outside(2, "segmentBytes", 0, 1L << 30);
  }

  private String wrongOfGroup() {
    String wrong = created.outside(4, "members", 1, 255);
    if (wrong == null) wrong = created.outside(5, "inFlight", 1, 65536);
    return wrong != null ? wrong : created.outside(6, "maxDeliveries", 0, 65534);
  }

  /** Which directory is not there: of a durable topic, one of two. */
  private String missing() {
    Path data = place.dataDirectory() != null ? place.dataDirectory() : variable("LEAT_DATA_DIR");
    boolean isData = Files.isDirectory(directory()) && data != null && !Files.isDirectory(data);
    return "the directory " + (isData ? data : directory()) + " does not exist and cannot be made; "
        + (isData ? "LEAT_DATA_DIR or Place.dataDirectory" : "LEAT_DIR or Place.directory") + " names another";
  }

  private Path directory() {
    if (place.directory() != null) return place.directory();
    Path path = variable("LEAT_DIR");
    return path != null ? path : Path.of("/dev/shm/leat-" + Native.userId());
  }

  private static Path variable(String name) {
    String value = System.getenv(name);
    return value == null || value.isEmpty() ? null : Path.of(value);
  }
}
