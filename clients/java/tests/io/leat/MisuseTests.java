// If these failed, a mistake in a Java program would end the virtual machine, publish half a
// record, or leave a thread waiting for a handle that is closed.
package io.leat;

import static io.leat.Tests.bytes;
import static io.leat.Tests.check;
import static io.leat.Tests.equal;
import static io.leat.Tests.fails;
import static io.leat.Tests.fromBeginning;

import java.time.Duration;
import java.util.AbstractList;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;

/** Misuse is an exception, and never ends the program. */
final class MisuseTests {
  void closingDuringAWaitEndsIt() throws Exception {
    try (Topic topic =
        Topic.create("t", new TopicOptions().capacityBytes(65536).segmentBytes(8192))) {
      Subscriber gating = fromBeginning(topic);
      Publisher publisher = topic.publisher();
      fails(ErrorCode.FULL, () -> { for (;;) publisher.publish(new byte[3000], Duration.ZERO); });
      Subscriber subscriber = topic.subscriber();
      Subscriber waiter = topic.subscriber();
      Member member = topic.group("g").join();
      closes(publisher, () -> publisher.publish(new byte[3000]));
      closes(subscriber, () -> subscriber.receive(null));
      closes(waiter, () -> Subscriber.waitAny(List.of(gating.isLossy() ? gating : waiter), null));
      closes(member, () -> member.receive(Duration.ofDays(100_000)));
      gating.close();
    }
  }

  private static void closes(AutoCloseable handle, Callable<?> wait) throws Exception {
    AtomicBoolean isDone = new AtomicBoolean();
    Thread waiting =
        new Thread(
            () -> {
              fails(IllegalStateException.class, wait);
              isDone.set(true);
            });
    waiting.start();
    Thread.sleep(50);
    check(!isDone.get());
    handle.close();
    waiting.join(5000);
    check(isDone.get());
  }

  void secondThreadsAreRefused() throws Exception {
    try (Topic topic =
            Topic.create("t", new TopicOptions().capacityBytes(65536).segmentBytes(8192));
        Subscriber gating = fromBeginning(topic);
        Publisher publisher = topic.publisher();
        Subscriber subscriber = topic.subscriber();
        Member member = topic.group("g").join()) {
      isRefused(subscriber, () -> subscriber.receive(null), () -> subscriber.poll(1));
      isRefused(subscriber, () -> subscriber.receive(null), () -> Subscriber.waitAny(List.of(subscriber), null));
      isRefused(member, () -> member.receive(null), member::acknowledgeAll);
      fails(IllegalStateException.class, () -> Subscriber.waitAny(List.of(subscriber, subscriber), null));
      equal(List.of(), subscriber.poll(1)); // It was left in order.
      fails(ErrorCode.FULL, () -> { for (;;) publisher.publish(new byte[3000], Duration.ZERO); });
      isRefused(publisher, () -> publisher.publish(new byte[3000]), () -> publisher.claim(1));
      fails(ErrorCode.FULL, () -> publisher.publish(new byte[3000], Duration.ZERO));
    }
  }

  private static void isRefused(Handle handle, Callable<?> wait, Callable<?> meanwhile) throws Exception {
    Thread waiting = new Thread(() -> fails(ErrorCode.STOPPED, wait));
    waiting.start();
    Thread.sleep(50);
    equal("another thread uses it", fails(IllegalStateException.class, meanwhile).getMessage());
    handle.stop();
    waiting.join();
    check(handle.isStopped());
    handle.resume();
  }

  void manyThreadsAtOnceLoseNothing() throws Exception {
    try (Topic topic = Topic.create("t", new TopicOptions().policy(Policy.OVERWRITE))) {
      Publisher publisher = topic.publisher();
      AtomicInteger published = new AtomicInteger();
      List<Thread> threads = new ArrayList<>();
      for (int i = 0; i < 8; ++i) {
        Thread thread =
            new Thread(
                () -> {
                  for (int n = 0; n < 20_000; ++n) {
                    try {
                      publisher.publish(bytes("record " + n));
                      published.incrementAndGet();
                    } catch (IllegalStateException e) { // Another thread uses it.
                    }
                  }
                });
        threads.add(thread);
        thread.start();
      }
      for (Thread thread : threads) thread.join();
      equal((long) published.get(), topic.info().partitions().get(0).end());
      // Closing while others use it.
      Thread hammer =
          new Thread(
              () -> {
                try {
                  for (;;) publisher.publish(bytes("x"));
                } catch (IllegalStateException e) {
                  equal("it is closed", e.getMessage());
                }
              });
      hammer.start();
      Thread.sleep(20);
      publisher.close();
      hammer.join(5000);
      check(!hammer.isAlive());
    }
  }

  void wrongArgumentsThrow() throws Exception {
    try (Topic topic = Topic.create("t", new TopicOptions());
        Publisher publisher = topic.publisher();
        Subscriber subscriber = topic.subscriber();
        Member member = topic.group("g").join()) {
      fails(NullPointerException.class, () -> publisher.publish((byte[]) null));
      fails(NullPointerException.class, () -> publisher.publish((NewRecord) null));
      fails(NullPointerException.class, () -> publisher.publishBatch(Arrays.asList(bytes("x"), null)));
      fails(NullPointerException.class, () -> new NewRecord(null));
      fails(NullPointerException.class, () -> { member.acknowledge((Delivery) null); return null; });
      fails(IllegalArgumentException.class, () -> subscriber.poll(0));
      fails(IllegalArgumentException.class, () -> subscriber.receive(1, Duration.ofNanos(-1)));
      fails(IllegalArgumentException.class, () -> publisher.claim(-1));
      fails(IllegalArgumentException.class, () -> Subscriber.waitAny(List.of(), null));
      fails(IllegalArgumentException.class, () -> From.offset(-1));
      fails(ErrorCode.INVALID_ARGUMENT, () -> topic.publisher(new PublisherOptions().partition(1)));
      fails(ErrorCode.INVALID_ARGUMENT, () -> topic.group("no/name"));
      fails(
          ErrorCode.INVALID_ARGUMENT,
          () -> topic.group("g").join(new MemberOptions().name("x".repeat(64))));
      equal(0L, publisher.publish(bytes("still works")));
      publisher.claim(
          10,
          claim -> {
            fails(ErrorCode.INVALID_ARGUMENT, () -> { claim.commit(11); return null; });
            fails(java.nio.BufferOverflowException.class, () -> claim.data().put(new byte[11]));
          });
    }
  }

  /** Of one array there are 2 GiB at most: more are many of them, or the same again and again. */
  void moreThanFourGibibytesThrow() throws Exception {
    TopicOptions options = new TopicOptions().capacityBytes(4 << 20).segmentBytes(1 << 20);
    try (Topic topic = Topic.create("t", options);
        Publisher publisher = topic.publisher();
        Subscriber subscriber = topic.subscriber()) {
      byte[] large = new byte[16 << 20];
      final int times = 257; // 4 GiB and 16 MiB: the lowest 32 bits of that are fewer.
      List<NewRecord> records = new ArrayList<>();
      records.add(new NewRecord(large));
      records.add(new NewRecord(bytes("x")).key(large));
      Header header = new Header("name", large);
      records.add(new NewRecord(bytes("x")).header(header));
      records.add(new NewRecord(bytes("x")).header(new Header(large, bytes("x"))));
      NewRecord many = new NewRecord(bytes("x"));
      for (int i = 0; i < times; ++i) many.header(header);
      long before = Tests.status("VmHWM");
      fails(ErrorCode.TOO_LARGE, () -> publisher.publish(large));
      fails(ErrorCode.TOO_LARGE, () -> publisher.publish(many));
      fails(ErrorCode.TOO_LARGE, () -> publisher.publishRecordBatch(List.of(many)));
      fails(ErrorCode.TOO_LARGE, () -> publisher.publishBatch(Collections.nCopies(times, large)));
      for (NewRecord record : records) {
        fails(ErrorCode.TOO_LARGE, () -> publisher.publish(record));
        fails(ErrorCode.TOO_LARGE, () -> publisher.publishRecordBatch(Collections.nCopies(times, record)));
      }
      fails(ErrorCode.TOO_LARGE, () -> publisher.claim(Integer.MAX_VALUE));
      fails(ErrorCode.TOO_LARGE, () -> publisher.claim(Integer.MAX_VALUE, claim -> check(false)));
      check(Tests.status("VmHWM") < before + 100_000); // kB: nothing was copied first.
      equal(List.of(), subscriber.poll(1));
      equal(0L, publisher.publish(bytes("still works")));
    }
  }

  /** Which the compiler refuses, unless it is told not to. */
  @SuppressWarnings({"unchecked", "rawtypes"})
  void wrongTypesThrow() throws Exception {
    try (Topic topic = Topic.create("t", new TopicOptions());
        Publisher publisher = topic.publisher();
        Subscriber subscriber = topic.subscriber();
        Member member = topic.group("g").join()) {
      List wrong = List.of(bytes("right"), "wrong");
      fails(ArrayStoreException.class, () -> publisher.publishBatch(wrong));
      fails(ClassCastException.class, () -> publisher.publishRecordBatch(wrong));
      fails(ArrayStoreException.class, () -> Subscriber.waitAny(wrong, Duration.ZERO));
      fails(ClassCastException.class, () -> member.acknowledge(wrong));
      fails(NullPointerException.class, () -> topic.group(null));
      fails(NullPointerException.class, () -> Topic.open(null));
      equal(0L, publisher.publish(bytes("still works")));
      equal(1, subscriber.poll(8).size());
      member.acknowledge(member.receive(Duration.ofSeconds(5)));
    }
  }

  /** What a list says may be wrong, or change, or call back: C sees nothing of that. */
  void listsAreReadOnce() throws Exception {
    try (Topic topic = Topic.create("t", new TopicOptions());
        Subscriber reader = fromBeginning(topic)) {
      Publisher publisher = topic.publisher();
      publisher.publishBatch(Collections.nCopies(100, new byte[30]));
      equal(100L, publisher.publishBatch(new Lying<>(List.of(bytes("one"), bytes("two")), 90)));
      NewRecord three = new NewRecord(bytes("three")).header("a", bytes("b"));
      equal(102L, publisher.publishRecordBatch(new Lying<>(List.of(three), 90), 0, null));
      equal(List.of("one", "two", "three"), Tests.texts(reader.poll(200)).subList(100, 103));
      publisher.publish(bytes("something to wait for"));
      Subscriber other = topic.subscriber();
      List<Subscriber> alternating =
          new AbstractList<>() {
            private int calls;

            @Override
            public Subscriber get(int index) {
              return calls++ % 2 == 0 ? reader : other;
            }

            @Override
            public int size() {
              return 1;
            }
          };
      equal(0, Subscriber.waitAny(alternating, Duration.ofSeconds(10)));
      equal(1, reader.poll(10).size()); // Nobody uses it any more,
      equal(0, other.poll(10).size()); // and this one nobody has.
      List<byte[]> closing =
          new AbstractList<>() {
            @Override
            public byte[] get(int index) {
              publisher.close();
              return bytes("x");
            }

            @Override
            public int size() {
              return 1;
            }
          };
      fails(IllegalStateException.class, () -> publisher.publishBatch(closing));
    }
  }

  /** A list with fewer elements than it says. */
  private static final class Lying<E> extends AbstractList<E> {
    private final List<E> of;
    private final int size;

    Lying(List<E> of, int size) {
      this.of = of;
      this.size = size;
    }

    @Override
    public E get(int index) {
      return of.get(index);
    }

    @Override
    public int size() {
      return size;
    }

    @Override
    public Iterator<E> iterator() {
      return of.iterator();
    }
  }

  /** Another thread changes a record while it is published: what arrives is one that it was meanwhile. */
  void recordsThatChangeAreWhole() throws Exception {
    try (Topic topic = Topic.create("t", new TopicOptions());
        Publisher publisher = topic.publisher();
        Subscriber subscriber = topic.subscriber()) {
      AtomicReference<NewRecord> current = new AtomicReference<>(new NewRecord(bytes("value")));
      AtomicBoolean isOver = new AtomicBoolean();
      Thread changing =
          new Thread(
              () -> {
                while (!isOver.get()) {
                  NewRecord record = current.get();
                  for (int i = 0; i < 5; ++i) record.header("name".repeat(20), new byte[90]).key(new byte[i]);
                }
              });
      changing.start();
      for (int i = 0; i < 10_000; ++i) {
        NewRecord record = new NewRecord(bytes("value"));
        current.set(record);
        try {
          for (int n = 0; n < 4; ++n) publisher.publish(record);
        } catch (NullPointerException e) { // The list of headers was growing.
        } catch (LeatException e) {
          equal(ErrorCode.TOO_LARGE, e.code());
          check(record.headers.size() > 1000);
        }
        for (Entry entry : subscriber.poll(100)) {
          equal("value", Tests.text(entry.value()));
          for (Header header : entry.headers()) {
            equal("name".repeat(20), header.nameText());
            equal(90, header.value().length);
          }
        }
      }
      isOver.set(true);
      changing.join();
    }
  }
}
