// If this failed, a Java program would take one error for another, or show a sentence that is not
// its own.
package io.leat;

import static io.leat.Tests.check;
import static io.leat.Tests.equal;
import static io.leat.Tests.fails;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

final class ErrorTests {
  void areThoseOfTheList() throws Exception {
    List<String> lines = Files.readAllLines(Path.of(System.getProperty("leat.errors", "spec/errors.csv")));
    equal(lines.size() - 1, ErrorCode.values().length);
    for (ErrorCode code : ErrorCode.values()) {
      String line = lines.get(code.number() + 1);
      check(line.startsWith(code.number() + "," + code.text() + ","));
      if (code == ErrorCode.OK) continue;
      equal(code.text(), Native.text(Native.errorName(code.number())));
      LeatException error = LeatException.of(code);
      equal(code.text(), error.name());
      String sentence = line.replaceFirst("[^,]*,[^,]*,", "").replace("\"", "");
      check(error.getMessage().startsWith(sentence));
    }
    check(LeatException.of(ErrorCode.PERMISSION.number(), 13).getMessage().length() > 20);
    check(!Topic.version().isEmpty());
  }

  /** Which class each code of the header has. Whoever adds a code decides what callers are to catch. */
  void haveAClassForEachFamily() throws Exception {
    Map<Class<?>, String> families = new HashMap<>();
    families.put(AlreadyExistsException.class, "EXISTS");
    families.put(CorruptException.class, "CORRUPT WRONG_FORMAT");
    families.put(DeletedException.class, "DELETED CLOSED");
    families.put(ExpiredException.class, "EXPIRED");
    families.put(FullException.class, "FULL WOULD_DEADLOCK");
    families.put(InUseException.class, "BUSY");
    families.put(
        InvalidUseException.class,
        "INVALID_ARGUMENT UNSUPPORTED NOT_ALLOWED FORKED NEEDS_DURABLE NEEDS_TIMESTAMPS"
            + " NEEDS_GROWING NOT_WITH_OVERWRITE NOT_WITH_DURABLE");
    families.put(LimitException.class, "TOO_MANY IN_FLIGHT_FULL REDELIVERY_FULL");
    families.put(NotDurableException.class, "NOT_DURABLE");
    families.put(NotFoundException.class, "NOT_FOUND");
    families.put(NotInFlightException.class, "NOT_IN_FLIGHT LEASE_LOST REVOKED");
    families.put(PermissionException.class, "PERMISSION");
    families.put(StorageException.class, "NO_SPACE IO_ERROR READ_ONLY NO_MEMORY");
    families.put(StoppedException.class, "STOPPED INTERRUPTED");
    families.put(TimedOutException.class, "TIMEOUT");
    families.put(TooLargeException.class, "TOO_LARGE BUFFER_TOO_SMALL");
    Path header = Path.of(System.getProperty("leat.header", "src/capi/leat.h"));
    int count = 0;
    for (String line : Files.readAllLines(header)) {
      Matcher found = Pattern.compile("#define LEAT_ERR_(\\w+) (\\d+) .*").matcher(line);
      if (!found.matches()) continue;
      ++count;
      LeatException error = LeatException.of(Integer.parseInt(found.group(2)), 0);
      equal(found.group(1), error.code().name());
      String codes = families.get(error.getClass());
      check(codes != null && List.of(codes.split(" ")).contains(found.group(1)));
    }
    equal(ErrorCode.values().length - 1, count);
    equal(LeatException.class.getPermittedSubclasses().length, families.size());
    int listed = 0;
    for (String codes : families.values()) listed += codes.split(" ").length;
    equal(count, listed);
  }

  /** Also those that C throws. */
  void areCaughtByTheirFamily() {
    fails(NotFoundException.class, () -> Topic.open("missing"));
    try (Topic topic = Topic.create("topic", new TopicOptions())) {
      fails(AlreadyExistsException.class, () -> Topic.create("topic", new TopicOptions()));
      Subscriber subscriber = topic.subscriber();
      fails(TimedOutException.class, () -> subscriber.receive(Duration.ofMillis(1)));
      subscriber.stop();
      fails(StoppedException.class, () -> subscriber.receive(null));
      fails(InvalidUseException.class, () -> topic.shrink());
      Topic.delete("topic", true);
      fails(DeletedException.class, () -> subscriber.receive(null));
      subscriber.close();
    }
  }

  void nameTheThingAndTheCause() {
    Path nowhere = Path.of("/nonexistent/leat");
    Path directory = Path.of(System.getenv("LEAT_DIR"));
    says(
        "cannot create topic 'orders': the directory /nonexistent/leat does not exist and cannot be made; LEAT_DIR or",
        () -> Topic.create("orders", new TopicOptions().place(new Place(nowhere, null))));
    says(
        "the directory /proc/nonexistent does not exist and cannot be made; LEAT_DATA_DIR or",
        () ->
            Topic.create(
                "orders",
                new TopicOptions().durable(Durability.OS).place(new Place(null, Path.of("/proc/nonexistent")))));
    says("topic 'my orders': a name is 1 to 200 letters", () -> Topic.create("my orders", new TopicOptions()));
    says(
        "partitions is 0, and must be 1 to 1024",
        () -> Topic.create("orders", new TopicOptions().partitions(0)));
    says(
        "its options contradict each other",
        () -> Topic.create("orders", new TopicOptions().maxCapacityBytes(1 << 30)));
    says("topic 'lightq://u@h/t': that is the address of a broker", () -> Topic.open("lightq://u@h/t"));
    says("cannot open topic 'missing': there is no such topic in " + directory, () -> Topic.open("missing"));
    says(
        "cannot delete topic 'missing': there is no such topic in " + directory,
        () -> { Topic.delete("missing"); return null; });
    try (Topic topic = Topic.create("topic", new TopicOptions())) {
      says(
          "cannot open group 'workers': members is 300, and must be 1 to 255",
          () -> topic.group("workers", new GroupOptions().members(300)));
      says(
          "name of a member has 64 bytes, and at most 63 are allowed",
          () -> topic.group("g").join(new MemberOptions().name("x".repeat(64))));
      says("cannot find group 'missing': no such topic or group", () -> topic.findGroup("missing"));
      says("cannot delete group 'missing'", () -> { topic.deleteGroup("missing"); return null; });
      says(
          "partition 7 does not exist: the topic has 1",
          () -> topic.publisher(new PublisherOptions().partition(7)));
      says(
          "partition 7 does not exist: the topic has 1",
          () -> topic.subscriber(new SubscriberOptions().partition(7)));
    }
  }

  private static void says(String wanted, Callable<?> call) {
    String message = fails(LeatException.class, call).getMessage();
    if (!message.contains(wanted)) throw new AssertionError(message);
  }
}
