// If these failed, a wait would end late or not at all, lose a record when its thread is
// interrupted, keep a CPU busy, or hold up virtual threads.
package io.leat;

import static io.leat.Tests.bytes;
import static io.leat.Tests.check;
import static io.leat.Tests.equal;
import static io.leat.Tests.fails;
import static io.leat.Tests.fromBeginning;

import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

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

  /**
   * All wait at once, together for less than one may take. What counts is the processor time of the threads that
   * wait, of the pool too: that of the JVM's own threads is not ours. Cold caches of a loaded machine add to it, so
   * the least of three counts.
   */
  void costNothing() throws Exception {
    try (Topic topic = Topic.create("t", new TopicOptions())) {
      Group group = topic.group("g");
      List<Handle> handles = new ArrayList<>();
      List<Thread> threads = new ArrayList<>();
      for (boolean isVirtual : Runtime.version().feature() >= 21 ? List.of(false, true) : List.of(false)) {
        List<Subscriber> all = new ArrayList<>();
        for (int i = 0; i < 5; ++i) all.add(topic.subscriber());
        Member member = group.join();
        Member other = group.join();
        handles.addAll(all);
        handles.addAll(List.of(member, other));
        List<Callable<?>> waits =
            List.of(
                () -> all.get(0).receive(null), () -> all.get(1).receiveViews(1, Duration.ofHours(1)),
                () -> { all.get(2).await(null); return null; }, () -> Subscriber.waitAny(all.subList(3, 5), null),
                () -> member.receive(null),
                () -> {
                  fails(ErrorCode.TIMEOUT, () -> other.receive(Duration.ZERO)); // Or else there may be something.
                  other.await(null);
                  return null;
                });
        for (Callable<?> wait : waits) {
          threads.add(start(isVirtual, () -> fails(ErrorCode.STOPPED, wait)));
          threads.get(threads.size() - 1).setName("idle");
        }
      }
      Thread.sleep(200);
      long least = Long.MAX_VALUE;
      for (int i = 0; i < 3 && least >= 2_000_000; ++i) { // 0.1 %
        long begin = cpuNanos();
        Thread.sleep(2000);
        least = Math.min(least, cpuNanos() - begin);
      }
      for (Thread thread : threads) check(thread.isAlive());
      for (Handle handle : handles) handle.stop();
      for (Thread thread : threads) thread.join();
      for (Handle handle : handles) handle.close();
      if (least >= 2_000_000) throw new AssertionError(least + " ns");
    }
  }

  private static long cpuNanos() {
    var threads = ManagementFactory.getThreadMXBean();
    long sum = 0;
    for (var info : threads.getThreadInfo(threads.getAllThreadIds())) {
      if (info == null || !List.of("idle", "leat-wait").contains(info.getThreadName())) continue;
      sum += Math.max(0, threads.getThreadCpuTime(info.getThreadId()));
    }
    return sum;
  }

  /** A million records through handles whose next call is on another thread of the system, again and again. */
  void mayBeOnAnyThread() throws Exception {
    final int publishers = 4;
    final int each = 250_000;
    final int all = publishers * each;
    try (Topic topic = Topic.create("t", new TopicOptions().capacityBytes(1 << 20))) {
      List<Turns> turns = new ArrayList<>();
      for (int i = 0; i < publishers; ++i) {
        Publisher publisher = topic.publisher();
        AtomicLong next = new AtomicLong();
        turns.add(
            new Turns(
                publisher,
                () -> {
                  for (int n = 0; n < 64 && next.get() < each; ++n) publisher.publish(bytes("record " + next.getAndIncrement()));
                  return next.get() < each;
                }));
      }
      for (int i = 0; i < 2; ++i) {
        Subscriber subscriber = fromBeginning(topic);
        AtomicLong offset = new AtomicLong();
        turns.add(
            new Turns(
                subscriber,
                () -> {
                  for (Entry entry : subscriber.receive(64, Duration.ofSeconds(20))) equal(offset.getAndIncrement(), entry.offset());
                  return offset.get() < all;
                }));
      }
      Member member = topic.group("g", new GroupOptions().from(From.beginning())).join();
      AtomicLong acknowledged = new AtomicLong();
      turns.add(
          new Turns(
              member,
              () -> acknowledged.addAndGet(member.acknowledge(member.receiveBatch(64, Duration.ofSeconds(20)))) < all));
      for (Turns one : turns) one.start();
      for (Turns one : turns) one.done.get();
      equal((long) all, topic.info().partitions().get(0).end());
      for (Turns one : turns) if (one.changes < 10) throw new AssertionError(one.changes + " changes of the thread");
    }
  }

  /** Uses a handle until it is done: a virtual thread where there are any, else two threads in turn. */
  private static final class Turns {
    final CompletableFuture<Void> done = new CompletableFuture<>();
    private final Handle handle;
    private final Callable<Boolean> turn;
    private Path thread; // Of the system, that had the last turn.
    int changes;

    Turns(Handle handle, Callable<Boolean> turn) {
      this.handle = handle;
      this.turn = turn;
    }

    void start() throws ReflectiveOperationException {
      if (Runtime.version().feature() < 21) {
        next(Executors.newSingleThreadExecutor(), Executors.newSingleThreadExecutor());
      } else {
        WaitTests.start(true, () -> { while (goesOn()) LockSupport.parkNanos(1); });
      }
    }

    private void next(ExecutorService one, ExecutorService other) {
      one.execute(
          () -> {
            if (goesOn()) {
              next(other, one);
            } else {
              one.shutdown();
              other.shutdown();
            }
          });
    }

    private boolean goesOn() {
      try {
        Path now = Files.readSymbolicLink(Path.of("/proc/thread-self"));
        if (thread != null && !now.equals(thread)) ++changes;
        thread = now;
        if (turn.call()) return true;
        handle.close();
        done.complete(null);
      } catch (Throwable e) {
        done.completeExceptionally(e);
      }
      return false;
    }
  }
}
