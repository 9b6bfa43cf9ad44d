package io.leat;

import static io.leat.Tests.bytes;
import static io.leat.Tests.check;
import static io.leat.Tests.equal;
import static io.leat.Tests.eventually;
import static io.leat.Tests.status;

import java.io.File;
import java.util.List;

final class LeakTests {
  private static int descriptors() {
    return new File("/proc/self/fd").list().length;
  }

  void droppedHandlesAreClosed() throws Exception {
    try (Topic topic = Topic.create("t", new TopicOptions())) {
      drop(topic);
      equal(3, topic.info().participants().size());
      eventually(
          () -> {
            System.gc();
            return topic.info().participants().isEmpty();
          });
    }
  }

  private static void drop(Topic topic) {
    topic.publisher().publish(bytes("x"));
    topic.subscriber().poll(1);
    topic.group("g").join();
    Topic.open("t");
  }

  void openAndCloseTenThousandTimes() throws Exception {
    try (Topic topic = Topic.create("t", new TopicOptions().capacityBytes(1 << 20))) {
      Group group = topic.group("g");
      openAndClose(topic, group, 1000);
      System.gc();
      Thread.sleep(100);
      long memory = status("VmRSS");
      long threads = status("Threads");
      int files = descriptors();
      openAndClose(topic, group, 10_000);
      System.gc();
      Thread.sleep(100);
      check(descriptors() <= files + 2);
      check(status("Threads") <= threads + 2);
      long grown = status("VmRSS") - memory;
      if (grown > 30_000) throw new AssertionError("grown by " + grown + " kB");
    }
  }

  private static void openAndClose(Topic topic, Group group, int times) {
    for (int i = 0; i < times; ++i) {
      try (Publisher publisher = topic.publisher();
          Subscriber subscriber = topic.subscriber();
          Member member = group.join()) {
        publisher.publishBatch(List.of(bytes("one"), bytes("two")));
        equal(2, subscriber.poll(64).size());
        if (i % 2 == 0) subscriber.waitFd();
        else subscriber.pollViews(1);
        member.acknowledge(member.receiveBatch(2, null));
      }
      if (i % 20 == 0) Topic.open("t").close();
    }
  }
}
