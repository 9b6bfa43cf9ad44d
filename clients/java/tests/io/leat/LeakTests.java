// If these failed, a Java program that runs for long would run out of memory, threads or
// descriptors.
package io.leat;

import static io.leat.Tests.bytes;
import static io.leat.Tests.check;
import static io.leat.Tests.equal;
import static io.leat.Tests.eventually;
import static io.leat.Tests.status;

import java.io.File;
import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.management.ObjectName;

final class LeakTests {
  private static int descriptors() {
    return new File("/proc/self/fd").list().length;
  }

  /** By the cleaner's thread, whichever thread collects. */
  void droppedHandlesAreClosed() throws Exception {
    try (Topic topic = Topic.create("t", new TopicOptions())) {
      int files = descriptors();
      drop(topic);
      equal(3, topic.info().participants().size());
      eventually(
          () -> {
            System.gc();
            return topic.info().participants().isEmpty() && descriptors() <= files;
          });
      try (Subscriber reader = Tests.fromBeginning(topic)) {
        equal(List.of("x", "aborted"), Tests.texts(reader.poll(8)));
      }
    }
  }

  private static void drop(Topic topic) {
    Publisher publisher = topic.publisher();
    publisher.publish(bytes("x"));
    publisher.claim(1);
    topic.subscriber().poll(1);
    topic.group("g").join();
    Topic.open("t");
  }

  /** Of each kind the same number, together 10,000. */
  void openAndCloseTenThousandTimes() throws Exception {
    final int rounds = 10_000 / 6 / 4 + 1;
    try (Topic topic = Topic.create("t", new TopicOptions().capacityBytes(1 << 20))) {
      topic.group("g", new GroupOptions().members(2).inFlight(8)).close(); // Small, and soon mapped.
      openAndClose(2 * rounds); // Until the JVM has compiled all that.
      long threads = status("Threads");
      int files = descriptors();
      // What is leaked grows in each part; what the JVM takes does not.
      long leaked = Long.MAX_VALUE;
      long grown = Long.MAX_VALUE;
      for (int part = 0; part < 4; ++part) {
        long memory = memoryAfterCollection();
        long before = allocatedKilobytes();
        openAndClose(rounds);
        grown = Math.min(grown, memoryAfterCollection() - memory);
        leaked = Math.min(leaked, (allocatedKilobytes() - before) * 1024 / rounds);
      }
      check(descriptors() <= files + 4); // The JVM starts threads of its own when it needs them.
      check(status("Threads") <= threads + 4);
      if (grown > 1000) throw new AssertionError("grown by " + grown + " kB");
      if (leaked > 150) throw new AssertionError(leaked + " bytes a round");
    }
  }

  /** What malloc gave out, as the JVM says: pages that are resident are too coarse. */
  private static long allocatedKilobytes() throws Exception {
    Object said =
        ManagementFactory.getPlatformMBeanServer()
            .invoke(
                new ObjectName("com.sun.management:type=DiagnosticCommand"), "vmInfo",
                new Object[] {new String[0]}, new String[] {String[].class.getName()});
    Matcher found = Pattern.compile("C-Heap outstanding allocations: (\\d+)K").matcher(said.toString());
    check(found.find());
    return Long.parseLong(found.group(1));
  }

  private static long memoryAfterCollection() throws Exception {
    for (int i = 0; i < 3; ++i) {
      System.gc();
      Thread.sleep(50);
    }
    return status("VmRSS");
  }

  private static void openAndClose(int times) {
    for (int i = 0; i < times; ++i) {
      try (Topic topic = Topic.open("t");
          Group group = topic.group("g");
          Publisher publisher = topic.publisher();
          Subscriber subscriber = topic.subscriber();
          Member member = group.join()) {
        publisher.publishBatch(List.of(bytes("one"), bytes("two")));
        try (Claim claim = publisher.claim(3)) {
          if (i % 3 != 0) claim.commit();
        }
        check(subscriber.poll(64).size() >= 2);
        if (i % 2 == 0) subscriber.waitFd();
        else subscriber.pollViews(1);
        member.acknowledge(member.receiveBatch(3, null));
      }
    }
  }
}
