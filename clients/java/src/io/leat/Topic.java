package io.leat;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * An open topic: a log in shared memory that every process of a machine opens directly. Several threads may use it at
 * once. What is made from it stays when it is closed.
 *
 * <pre>{@code
 * try (Topic topic = Topic.openOrCreate("orders", new TopicOptions());
 *     Publisher publisher = topic.publisher()) {
 *   publisher.publish("hello".getBytes(UTF_8));
 * }
 * }</pre>
 *
 * <p>Timeouts are a {@link Duration}; null waits for as long as it takes, {@link Duration#ZERO} not at all. A wait
 * also ends when its thread is interrupted: with a {@link StoppedException} whose code is {@link
 * ErrorCode#INTERRUPTED}, and the thread stays interrupted. Then nothing was published, or lost.
 */
public final class Topic extends SharedHandle {
  /** No partition is named. */
  static final int ANY_PARTITION = -1;

  private static final long FIRST_BACKOFF_NS = 5_000_000;
  private static final long LONGEST_BACKOFF_NS = 250_000_000;

  private final Mirrors forReading = new Mirrors(false);
  private final Mirrors forWriting = new Mirrors(true);

  private Topic(long pointer) {
    super(Resource.TOPIC, pointer);
  }

  // ---- Topics by name -------------------------------------------------------------------------

  /**
   * Creates a topic and opens it. Of several processes that create the same name at once exactly one succeeds.
   *
   * @param name 1 to 200 letters, digits, dots, underscores and dashes
   * @param options what to change of the defaults
   * @return the topic, to be closed
   */
  public static Topic create(String name, TopicOptions options) {
    return make("create", name, options, false);
  }

  /**
   * Opens the topic if it exists, whatever its options are; otherwise creates it.
   *
   * @param name 1 to 200 letters, digits, dots, underscores and dashes
   * @param options what to change of the defaults
   * @return the topic, to be closed
   */
  public static Topic openOrCreate(String name, TopicOptions options) {
    return make("open or create", name, options, true);
  }

  /**
   * The same with the default options.
   *
   * @param name 1 to 200 letters, digits, dots, underscores and dashes
   * @return the topic, to be closed
   */
  public static Topic openOrCreate(String name) {
    return openOrCreate(name, new TopicOptions());
  }

  private static Topic make(String action, String name, TopicOptions options, boolean mayExist) {
    byte[] bytes = nameBytes(name);
    return Subject.newTopic(action, name, options)
        .explain(
            () ->
                new Topic(
                    Native.check(
                        Native.topicCreate(
                            bytes,
                            options.values.copy(),
                            Native.bytes(options.fileGroup),
                            options.place.directoryBytes(),
                            options.place.dataDirectoryBytes(),
                            mayExist))));
  }

  /**
   * Opens a topic that exists.
   *
   * @param name 1 to 200 letters, digits, dots, underscores and dashes
   * @return the topic, to be closed
   */
  public static Topic open(String name) {
    return open(name, Duration.ZERO, null);
  }

  /**
   * Opens a topic, and waits until it was created.
   *
   * @param name 1 to 200 letters, digits, dots, underscores and dashes
   * @param timeout how long to wait; null waits for as long as it takes
   * @return the topic, to be closed
   */
  public static Topic open(String name, Duration timeout) {
    return open(name, timeout, null);
  }

  /**
   * The same in another place; null is the default.
   *
   * @param name 1 to 200 letters, digits, dots, underscores and dashes
   * @param timeout how long to wait; null waits for as long as it takes
   * @param place the directories; null is the default
   * @return the topic, to be closed
   */
  public static Topic open(String name, Duration timeout, Place place) {
    Place where = place == null ? Place.DEFAULT : place;
    byte[] bytes = nameBytes(name);
    long timeoutNs = Times.timeout(timeout);
    long begin = System.nanoTime();
    // An interrupt ends these back-offs; it would not end a wait in C.
    for (long backoff = FIRST_BACKOFF_NS; ; backoff = Math.min(2 * backoff, LONGEST_BACKOFF_NS)) {
      long left = timeoutNs < 0 ? backoff : Math.max(0, timeoutNs - (System.nanoTime() - begin));
      long result = Native.topicOpen(bytes, 0, where.directoryBytes(), where.dataDirectoryBytes());
      if (!Native.is(result, ErrorCode.NOT_FOUND) || left == 0) {
        return Subject.topic("open", name, where).explain(() -> new Topic(Native.check(result)));
      }
      try {
        TimeUnit.NANOSECONDS.sleep(Math.min(left, backoff));
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
        throw LeatException.of(ErrorCode.INTERRUPTED);
      }
    }
  }

  /**
   * Deletes a topic that nobody uses, and frees its name.
   *
   * @param name 1 to 200 letters, digits, dots, underscores and dashes
   */
  public static void delete(String name) {
    delete(name, false, null);
  }

  /**
   * Deletes a topic; with force also while it has participants, which get {@link ErrorCode#DELETED}.
   *
   * @param name 1 to 200 letters, digits, dots, underscores and dashes
   * @param force whether to do so while others use it
   */
  public static void delete(String name, boolean force) {
    delete(name, force, null);
  }

  /**
   * The same in another place; null is the default.
   *
   * @param name 1 to 200 letters, digits, dots, underscores and dashes
   * @param force whether to do so while others use it
   * @param place the directories; null is the default
   */
  public static void delete(String name, boolean force, Place place) {
    Place where = place == null ? Place.DEFAULT : place;
    byte[] bytes = nameBytes(name);
    Subject.topic("delete", name, where)
        .explain(
            () ->
                Native.check(
                    Native.topicDelete(bytes, force, where.directoryBytes(), where.dataDirectoryBytes())));
  }

  /**
   * The names of all topics, sorted.
   *
   * @return the names, sorted
   */
  public static List<String> list() {
    return list(null);
  }

  /**
   * The same in another place; null is the default.
   *
   * @param place the directories; null is the default
   * @return the names, sorted
   */
  public static List<String> list(Place place) {
    Place where = place == null ? Place.DEFAULT : place;
    return lines(Native.topicList(where.directoryBytes(), where.dataDirectoryBytes()));
  }

  /** {@return the library's version, for example {@code "0.1.0"}} */
  public static String version() {
    return Native.text(Native.version());
  }

  private static byte[] nameBytes(String name) {
    if (name == null) throw new NullPointerException("a name is missing");
    return Native.bytes(name);
  }

  private static List<String> lines(byte[] text) {
    return Native.text(text).lines().toList();
  }

  // ---- What is made from it -------------------------------------------------------------------

  /**
   * Makes a publisher with the default options.
   *
   * @return the publisher, to be closed
   */
  public Publisher publisher() {
    return publisher(new PublisherOptions());
  }

  /**
   * Makes a publisher.
   *
   * @param options what to change of the defaults
   * @return the publisher, to be closed
   */
  public Publisher publisher(PublisherOptions options) {
    return with(
        topic -> {
          boolean waits = options.acknowledge == Stage.DURABLE;
          if (options.acknowledge == Stage.DEFAULT) waits = info().durable() == Durability.FSYNC;
          long made = inPartition(topic, options.values.get(0), Native.publisher(topic, options.values.copy()));
          return new Publisher(made, forWriting, waits);
        });
  }

  /**
   * Makes a subscriber with the default options: it reads what is published from now on.
   *
   * @return the subscriber, to be closed
   */
  public Subscriber subscriber() {
    return subscriber(new SubscriberOptions());
  }

  /**
   * Makes a subscriber.
   *
   * @param options what to change of the defaults
   * @return the subscriber, to be closed
   */
  public Subscriber subscriber(SubscriberOptions options) {
    return with(
        topic -> {
          long result = Native.subscriber(topic, options.values.copy());
          return new Subscriber(inPartition(topic, options.values.get(2), result), forReading);
        });
  }

  /** The result of making something for a partition: the topic may have fewer. */
  private static long inPartition(long topic, long partition, long result) {
    long count = Native.is(result, ErrorCode.INVALID_ARGUMENT) ? Native.topicPartitions(topic) : -1;
    if (count >= 0 && partition >= count) {
      String message = "partition " + partition + " does not exist: the topic has " + count;
      throw LeatException.of(ErrorCode.INVALID_ARGUMENT, 0, message);
    }
    return Native.check(result);
  }

  /**
   * Opens the consumer group of that name, or creates it with the default options.
   *
   * @param name 1 to 200 letters, digits, dots, underscores and dashes
   * @return the group, to be closed
   */
  public Group group(String name) {
    return group(name, new GroupOptions());
  }

  /**
   * Opens the consumer group of that name, or creates it; the options apply only then.
   *
   * @param name 1 to 200 letters, digits, dots, underscores and dashes
   * @param options what to change of the defaults
   * @return the group, to be closed
   */
  public Group group(String name, GroupOptions options) {
    long[] values = options.values.copy();
    byte[] bytes = nameBytes(name);
    long made =
        Subject.newGroup(name, options).explain(() -> number(topic -> Native.group(topic, bytes, values)));
    return new Group(made, values[9] != 0);
  }

  /**
   * Opens an existing group.
   *
   * @param name 1 to 200 letters, digits, dots, underscores and dashes
   * @return the group, to be closed
   */
  public Group findGroup(String name) {
    byte[] bytes = nameBytes(name);
    long found = Subject.group("find", name).explain(() -> number(topic -> Native.group(topic, bytes, null)));
    return new Group(found, false);
  }

  /**
   * Deletes a group that has no living member.
   *
   * @param name 1 to 200 letters, digits, dots, underscores and dashes
   */
  public void deleteGroup(String name) {
    deleteGroup(name, false);
  }

  /**
   * Deletes a group; with force also while it has members, which get {@link ErrorCode#CLOSED}.
   *
   * @param name 1 to 200 letters, digits, dots, underscores and dashes
   * @param force whether to do so while others use it
   */
  public void deleteGroup(String name, boolean force) {
    byte[] bytes = nameBytes(name);
    Subject.group("delete", name).explain(() -> number(topic -> Native.deleteGroup(topic, bytes, force)));
  }

  /** {@return the names of the topic's groups, sorted} */
  public List<String> groupNames() {
    return with(topic -> lines(Native.topicGroups(topic)));
  }

  // ---- What it tells --------------------------------------------------------------------------

  /** {@return its name} */
  public String name() {
    return with(topic -> Native.text(Native.topicName(topic)));
  }

  /** {@return the number of partitions} */
  public int partitions() {
    return (int) number(Native::topicPartitions);
  }

  /** {@return the largest record in bytes: key, headers, timestamp and value together, encoded} */
  public long maxRecordSize() {
    return number(Native::topicMaxRecordSize);
  }

  /** {@return a snapshot of the topic, which holds up nobody} */
  public TopicInfo info() {
    return with(topic -> TopicInfo.of(Native.topicInfo(topic)));
  }

  /**
   * The same, and the groups, as the JSON text that {@code leat topic info --json} prints.
   *
   * @return the text
   */
  public String json() {
    return with(topic -> Native.text(Native.topicJson(topic)));
  }

  // ---- What changes it ------------------------------------------------------------------------

  /**
   * Policy grow: sets how far each partition may grow from now on.
   *
   * @param bytes bytes of each partition
   */
  public void setMaxCapacity(long bytes) {
    number(topic -> Native.topicSetMaxCapacity(topic, bytes));
  }

  /**
   * Policy grow: frees idle memory, and returns how many bytes.
   *
   * @return how many bytes were freed
   */
  public long shrink() {
    return number(Native::topicShrink);
  }

  /**
   * A durable topic that is read-only: writes everything that may not be on stable storage, and makes the topic
   * writable again. An interrupt does not end this.
   *
   * @param timeout how long to wait; null waits for as long as it takes
   */
  public void repair(Duration timeout) {
    long timeoutNs = Times.timeout(timeout);
    number(topic -> Native.topicRepair(topic, timeoutNs));
  }
}
