package io.leat;

import static io.leat.Tests.bytes;
import static io.leat.Tests.check;
import static io.leat.Tests.equal;
import static io.leat.Tests.fails;
import static io.leat.Tests.fromBeginning;

import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;

final class WaitTests {
  void endAtTheirDeadline() {
    try (Topic topic = Topic.create("t", new TopicOptions()); Subscriber subscriber = topic.subscriber()) {
      long begin = System.nanoTime();
      fails(ErrorCode.TIMEOUT, () -> subscriber.receive(Duration.ofMillis(30)));
      check(System.nanoTime() - begin >= 30_000_000);
      fails(ErrorCode.TIMEOUT, () -> subscriber.receive(Duration.ZERO));
      fails(ErrorCode.TIMEOUT, () -> { subscriber.await(Duration.ofMillis(1)); return null; });
      fails(ErrorCode.TIMEOUT, () -> Subscriber.waitAny(List.of(subscriber), Duration.ofMillis(1)));
      check(subscriber.waitFd() > 2);
      try (Publisher publisher = topic.publisher(); Subscriber other = topic.subscriber()) {
        publisher.publish(bytes("x"));
        subscriber.await(null);
        subscriber.receive(null);
        equal(1, Subscriber.waitAny(List.of(subscriber, other), null));
      }
    }
  }

  void endByInterrupts() throws Exception {
    TopicOptions options = new TopicOptions().capacityBytes(65536).segmentBytes(8192);
    try (Topic topic = Topic.create("t", options);
        Subscriber subscriber = fromBeginning(topic);
        Subscriber other = topic.subscriber();
        Publisher publisher = topic.publisher();
        Member member = topic.group("g").join()) {
      interrupts(200, () -> subscriber.receive(null));
      interrupts(10, () -> subscriber.receiveViews(1, Duration.ofSeconds(50)));
      interrupts(10, () -> { subscriber.await(null); return null; });
      interrupts(10, () -> Subscriber.waitAny(List.of(other, subscriber), null));
      interrupts(10, () -> member.receive(null));
      fails(ErrorCode.FULL, () -> { for (;;) publisher.publish(new byte[3000], Duration.ZERO); });
      interrupts(10, () -> publisher.publish(new byte[3000]));
      interrupts(10, () -> publisher.publishBatch(List.of(new byte[3000])));
      interrupts(10, () -> publisher.claim(3000));
      // What need not wait is not ended.
      Thread.currentThread().interrupt();
      check(!subscriber.receive(64, null).isEmpty());
      fails(ErrorCode.STOPPED, () -> { subscriber.stop(); for (;;) subscriber.receive(64, null); });
      check(Thread.interrupted());
      subscriber.resume();
      fails(ErrorCode.TIMEOUT, () -> subscriber.receive(Duration.ofMillis(1)));
    }
  }

  /** At random moments: before, in and after a wait. Afterwards the handle waits again. */
  private static void interrupts(int rounds, Callable<?> wait) throws Exception {
    interrupts(rounds, wait, false);
    if (Runtime.version().feature() >= 21) interrupts(rounds, wait, true);
  }

  private static Thread start(boolean isVirtual, Runnable run) throws ReflectiveOperationException {
    if (isVirtual) return (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, run);
    Thread thread = new Thread(run);
    thread.start();
    return thread;
  }

  private static void interrupts(int rounds, Callable<?> wait, boolean isVirtual) throws Exception {
    Random random = new Random(rounds);
    for (int i = 0; i < rounds; ++i) {
      AtomicLong endedNs = new AtomicLong();
      Thread waiting =
          start(
              isVirtual,
              () -> {
                fails(ErrorCode.INTERRUPTED, wait);
                check(Thread.currentThread().isInterrupted());
                endedNs.set(System.nanoTime());
              });
      Thread.sleep(0, random.nextInt(900_000));
      if (i % 10 == 0) Thread.sleep(10);
      long begin = System.nanoTime();
      waiting.interrupt();
      waiting.join(5000);
      check(endedNs.get() != 0);
      check(endedNs.get() - begin < 1_000_000_000);
    }
  }

  /** What an interrupt ended was not done, and what was done is not done again. */
  void loseNothingByInterrupts() throws Exception {
    final int records = 20_000;
    TopicOptions options = new TopicOptions().capacityBytes(65536).segmentBytes(8192);
    try (Topic topic = Topic.create("t", options);
        Subscriber subscriber = fromBeginning(topic);
        Publisher publisher = topic.publisher()) {
      AtomicLong received = new AtomicLong();
      AtomicLong interrupts = new AtomicLong();
      Thread publishing =
          new Thread(
              () -> {
                for (int n = 0; n < records; ++n) {
                  byte[] value = bytes(n + " ".repeat(n % 1000));
                  equal((long) n, again(interrupts, () -> publisher.publish(value)));
                }
              });
      Thread reading =
          new Thread(
              () -> {
                while (received.get() < records) {
                  for (Entry entry : again(interrupts, () -> subscriber.receive(64, null))) {
                    long n = received.getAndIncrement();
                    check(entry.offset() == n && Tests.text(entry.value()).trim().equals("" + n));
                  }
                }
              });
      publishing.start();
      reading.start();
      for (Random random = new Random(3); publishing.isAlive() || reading.isAlive(); ) {
        (random.nextBoolean() ? publishing : reading).interrupt();
        Thread.sleep(0, random.nextInt(300_000));
      }
      equal((long) records, received.get());
      check(interrupts.get() > 10);
    }
  }

  private static <T> T again(AtomicLong interrupts, Callable<T> call) {
    for (;;) {
      try {
        return call.call();
      } catch (LeatException e) {
        equal(ErrorCode.INTERRUPTED, e.code());
        check(Thread.interrupted());
        interrupts.incrementAndGet();
      } catch (Exception e) {
        throw new AssertionError(e);
      }
    }
  }

  void costNothing() throws Exception {
    try (Topic topic = Topic.create("t", new TopicOptions()); Subscriber subscriber = topic.subscriber()) {
      Thread waiting = new Thread(() -> fails(ErrorCode.STOPPED, () -> subscriber.receive(null)));
      waiting.start();
      Thread.sleep(100);
      var threads = ManagementFactory.getThreadMXBean();
      long begin = threads.getThreadCpuTime(waiting.getId());
      Thread.sleep(1000);
      long spent = threads.getThreadCpuTime(waiting.getId()) - begin;
      subscriber.stop();
      waiting.join();
      check(spent < 1_000_000); // 0.1 %
    }
  }

  /** Virtual threads where there are any: each call may be on another thread of the system. */
  void mayBeOnAnyThread() throws Exception {
    ExecutorService executor = executor();
    try (Topic topic = Topic.create("t", new TopicOptions().capacityBytes(1 << 20))) {
      final int pairs = 4;
      final int records = 250_000;
      List<Future<?>> futures = new ArrayList<>();
      for (int i = 0; i < pairs; ++i) {
        Publisher publisher = topic.publisher();
        Subscriber subscriber = fromBeginning(topic);
        futures.add(
            executor.submit(
                () -> {
                  for (int n = 0; n < records; ++n) {
                    publisher.publish(bytes("record " + n));
                    if (n % 64 == 0) Thread.yield();
                  }
                  publisher.close();
                }));
        futures.add(
            executor.submit(
                () -> {
                  for (int left = pairs * records; left > 0; Thread.yield()) {
                    left -= subscriber.receive(64, Duration.ofSeconds(20)).size();
                  }
                  subscriber.close();
                }));
      }
      for (Future<?> future : futures) future.get();
      equal((long) pairs * records, topic.info().partitions().get(0).end());
    } finally {
      executor.shutdownNow();
    }
  }

  private static ExecutorService executor() throws ReflectiveOperationException {
    if (Runtime.version().feature() < 21) return Executors.newCachedThreadPool();
    return (ExecutorService) Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
  }
}
