// If these failed, a Java program could not find topics, would make them with other options than it
// gave, or could not share them with a second copy of the library.
package io.leat;

import static io.leat.Tests.check;
import static io.leat.Tests.equal;
import static io.leat.Tests.fails;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;

final class TopicTests {
  void areCreatedOpenedListedAndDeleted() {
    try (Topic topic = Topic.create("one", new TopicOptions())) {
      fails(ErrorCode.EXISTS, () -> Topic.create("one", new TopicOptions()));
      Topic.openOrCreate("two").close();
      Topic.openOrCreate("one").close();
      equal(List.of("one", "two"), Topic.list());
      equal("one", topic.name());
      equal(1, topic.partitions());
      check(topic.maxRecordSize() > 1000);
      fails(ErrorCode.NOT_FOUND, () -> Topic.open("three"));
      try (Topic again = Topic.open("one"); Publisher publisher = again.publisher()) {
        publisher.publish(new byte[1]);
        fails(ErrorCode.BUSY, () -> { Topic.delete("one"); return null; });
      }
      Topic.delete("two");
      Topic.delete("one", true);
      equal(List.of(), Topic.list());
    }
  }

  void takeEveryOption() {
    TopicOptions options =
        new TopicOptions()
            .policy(Policy.GROW)
            .capacityBytes(1 << 20)
            .segmentBytes(1 << 16)
            .maxCapacityBytes(1 << 22)
            .growBelowBytes(1 << 16)
            .partitions(3)
            .participants(10)
            .timestamps(true)
            .deleteWhenUnused(true)
            .revokeAfter(Duration.ofSeconds(5))
            .evictAfter(Duration.ofSeconds(6))
            .mode(0640);
    try (Topic topic = Topic.create("options", options);
        Publisher publisher = topic.publisher(new PublisherOptions().partition(2));
        Subscriber subscriber = topic.subscriber()) {
      publisher.publish(new byte[10]);
      TopicInfo info = topic.info();
      equal(Policy.GROW, info.policy());
      check(info.capacityBytes() >= 1 << 20 && info.segmentBytes() >= 1 << 16);
      check(info.maxCapacityBytes() >= 1 << 22);
      check(info.timestamps() && info.deleteWhenUnused() && !info.retainAll() && !info.singleWriter());
      equal(Duration.ofSeconds(5), info.revokeAfter());
      equal(Duration.ofSeconds(6), info.evictAfter());
      equal(Durability.NONE, info.durable());
      equal(ErrorCode.OK, info.state());
      equal(3, info.partitions().size());
      equal(1L, info.partitions().get(2).end());
      equal(2, info.participants().size());
      check(info.participants().stream().anyMatch(one -> one.role() == Role.SUBSCRIBER));
      check(info.participants().stream().allMatch(one -> one.pid() == ProcessHandle.current().pid()));
      equal(2, publisher.partition());
      topic.setMaxCapacity(1 << 21);
      check(topic.shrink() >= 0);
      check(topic.json().startsWith("{") && topic.json().contains("\"options\""));
      check(topic.json().contains(info.id().toString()));
    }
    fails(ErrorCode.INVALID_ARGUMENT, () -> Topic.create("x", new TopicOptions().partitions(0)));
    fails(IllegalArgumentException.class, () -> new TopicOptions().partitions(-1));
    fails(ErrorCode.UNSUPPORTED, () -> Topic.openOrCreate("lightq://somewhere"));
    fails(NullPointerException.class, () -> Topic.openOrCreate(null));
  }

  void lieInOtherPlaces() throws Exception {
    Path elsewhere = Files.createTempDirectory(Path.of("/dev/shm"), "leat-java-");
    Place place = new Place(elsewhere.resolve("topics"), elsewhere.resolve("data"));
    Files.createDirectory(place.dataDirectory());
    Topic.create("there", new TopicOptions().place(place).durable(Durability.OS)).close();
    equal(List.of("there"), Topic.list(place));
    equal(List.of(), Topic.list());
    Topic.open("there", Duration.ZERO, place).close();
    Topic.delete("there", true, place);
    try (var files = Files.walk(elsewhere)) {
      files.sorted(java.util.Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
    }
  }

  void areWaitedFor() throws Exception {
    Thread creator =
        new Thread(
            () -> {
              try {
                Thread.sleep(150);
              } catch (InterruptedException e) {
                return;
              }
              Topic.create("late", new TopicOptions());
            });
    creator.start();
    try (Topic topic = Topic.open("late", null)) {
      equal("late", topic.name());
    }
    creator.join();
    long begin = System.nanoTime();
    fails(ErrorCode.NOT_FOUND, () -> Topic.open("never", Duration.ofMillis(120)));
    check(System.nanoTime() - begin >= 120_000_000);
    Thread.currentThread().interrupt();
    fails(ErrorCode.INTERRUPTED, () -> Topic.open("never", null));
    check(Thread.interrupted());
  }

  /** As in a server that loads the jar once for each application. */
  void twoCopiesOfTheLibraryGetAlong() throws Exception {
    var jar = Topic.class.getProtectionDomain().getCodeSource().getLocation();
    try (Topic topic = Topic.create("t", new TopicOptions());
        Publisher publisher = topic.publisher();
        var loader = new java.net.URLClassLoader(new java.net.URL[] {jar}, null)) {
      Class<?> other = loader.loadClass("io.leat.Topic");
      check(other != Topic.class);
      try (AutoCloseable again = (AutoCloseable) other.getMethod("open", String.class).invoke(null, "t");
          AutoCloseable subscriber = (AutoCloseable) other.getMethod("subscriber").invoke(again)) {
        publisher.publish(Tests.bytes("x"));
        Object entries = subscriber.getClass().getMethod("poll", int.class).invoke(subscriber, 64);
        equal(1, ((List<?>) entries).size());
      }
    }
  }
}
