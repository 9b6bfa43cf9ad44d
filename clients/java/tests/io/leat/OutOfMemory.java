// If this failed, a Java program that runs out of heap while it receives a batch would lose its
// records.
package io.leat;

import static io.leat.Tests.equal;
import static io.leat.Tests.fails;
import static io.leat.Tests.fromBeginning;

import java.time.Duration;
import java.util.List;

/** Run with less memory than a batch needs: nothing of it is lost. */
public final class OutOfMemory {
  private static final int RECORDS = 30;

  private OutOfMemory() {}

  public static void main(String[] arguments) {
    TopicOptions options = new TopicOptions().capacityBytes(64 << 20).segmentBytes(16 << 20);
    try (Topic topic = Topic.create("t", options);
        Publisher publisher = topic.publisher()) {
      Subscriber subscriber = fromBeginning(topic);
      Member member = topic.group("g", new GroupOptions().from(From.beginning())).join();
      for (int i = 0; i < RECORDS; ++i) {
        int number = i;
        publisher.claim(1 << 20, claim -> claim.data().putInt(number));
      }
      fails(OutOfMemoryError.class, () -> subscriber.poll(64));
      subscriber.await(Duration.ZERO);
      equal(0, Subscriber.waitAny(List.of(subscriber), Duration.ZERO));
      for (int i = 0; i < RECORDS; ++i) {
        equal((long) i, i % 2 == 0 ? subscriber.receive(Duration.ZERO).offset() : viewed(subscriber, i));
      }
      fails(OutOfMemoryError.class, () -> member.receiveBatch(64, null));
      member.await(Duration.ZERO);
      for (int i = 0; i < RECORDS; ++i) {
        Delivery delivery = member.receive(Duration.ZERO);
        equal((long) i, delivery.offset());
        member.acknowledge(delivery);
      }
      equal(0L, member.inFlight());
    }
    System.out.println("nothing is lost");
  }

  private static long viewed(Subscriber subscriber, int number) {
    EntryView view = subscriber.pollViews(1).get(0);
    equal(number, view.value().getInt());
    return view.offset();
  }
}
