// If these failed, a record would arrive without its key or headers, cut, in the wrong partition,
// or not be on disk when it was said to be.
package io.leat;

import static io.leat.Tests.bytes;
import static io.leat.Tests.check;
import static io.leat.Tests.equal;
import static io.leat.Tests.fails;
import static io.leat.Tests.fromBeginning;
import static io.leat.Tests.text;
import static io.leat.Tests.texts;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;

final class RecordTests {
  void keepWhatTheyWere() {
    try (Topic topic = Topic.create("t", new TopicOptions().timestamps(true));
        Publisher publisher = topic.publisher();
        Subscriber subscriber = fromBeginning(topic)) {
      equal(0L, publisher.publish(bytes("plain")));
      NewRecord record =
          new NewRecord(bytes("value")).key(bytes("key")).header("name", bytes("one"))
              .header("", new byte[0]).partition(0);
      equal(1L, publisher.publish(record));
      equal(2L, publisher.publish(new NewRecord(new byte[0]).key(new byte[0])));
      List<Entry> entries = subscriber.receive(64, Duration.ofSeconds(5));
      equal(List.of("plain", "value", ""), texts(entries));
      Entry plain = entries.get(0);
      check(plain.key() == null && plain.headers().isEmpty() && !plain.isGap());
      check(Math.abs(plain.timestampMs() - System.currentTimeMillis()) < 10_000);
      Entry full = entries.get(1);
      equal("key", text(full.key()));
      equal(1L, full.offset());
      equal(0, full.partition());
      equal(2, full.headers().size());
      equal("name", full.headers().get(0).nameText());
      equal("one", text(full.headers().get(0).value()));
      equal(0, full.headers().get(1).name().length);
      check(Math.abs(full.timestampMs() - System.currentTimeMillis()) < 10_000);
      equal(0, entries.get(2).key().length);
      equal(List.of(), subscriber.poll(64));
      equal(3L, subscriber.offset(0));
      check(!subscriber.isLossy());
      try (Subscriber old = topic.subscriber(new SubscriberOptions().from(From.time(Instant.EPOCH)))) {
        equal(3, old.poll(10).size());
      }
    }
  }

  void ofEverySizeArriveInBatches() {
    Random random = new Random(1);
    try (Topic topic = Topic.create("t", new TopicOptions().capacityBytes(64 << 20));
        Publisher publisher = topic.publisher();
        Subscriber subscriber = fromBeginning(topic)) {
      List<byte[]> sent = new ArrayList<>();
      for (int round = 0; round < 40; ++round) {
        List<byte[]> batch = new ArrayList<>();
        for (int i = 0; i < 20; ++i) {
          byte[] value = new byte[round < 35 ? random.nextInt(1 << (i % 14)) : random.nextInt(100_000)];
          random.nextBytes(value);
          batch.add(value);
        }
        sent.addAll(batch);
        if (round % 2 == 0) {
          publisher.publishBatch(batch);
        } else {
          List<NewRecord> records = new ArrayList<>();
          for (byte[] value : batch) records.add(new NewRecord(value).key(value).header("h", value));
          publisher.publishRecordBatch(records);
        }
      }
      int at = 0;
      for (int limit = 1; at < sent.size(); limit = limit % 700 + 13) {
        for (Entry entry : subscriber.poll(limit)) {
          byte[] expected = sent.get(at++);
          check(Arrays.equals(expected, entry.value()));
          if (entry.key() == null) continue;
          check(Arrays.equals(expected, entry.key()));
          check(Arrays.equals(expected, entry.headers().get(0).value()));
        }
      }
      byte[] large = new byte[(int) topic.maxRecordSize() - 64];
      random.nextBytes(large);
      publisher.publish(large);
      check(Arrays.equals(large, subscriber.receive(null).value()));
      fails(ErrorCode.TOO_LARGE, () -> publisher.publish(new byte[(int) topic.maxRecordSize() + 1]));
      fails(ErrorCode.INVALID_ARGUMENT, () -> publisher.publishBatch(List.of()));
    }
  }

  void areWrittenInPlace() {
    try (Topic topic = Topic.create("t", new TopicOptions());
        Publisher publisher = topic.publisher();
        Subscriber subscriber = fromBeginning(topic)) {
      try (Claim claim = publisher.claim(10)) {
        claim.data().put(bytes("in place"));
        claim.commit(8);
        fails(ErrorCode.NOT_IN_FLIGHT, () -> { claim.commit(); return null; });
        fails(ErrorCode.NOT_IN_FLIGHT, claim::data);
      }
      equal(1L, publisher.claim(4, claim -> { claim.data().put(bytes("four")); }));
      fails(
          ArithmeticException.class,
          () -> publisher.claim(4, claim -> { throw new ArithmeticException(); }));
      publisher.claim(4).close();
      publisher.claim(2, Claim::abort);
      equal(0, publisher.claim(0).data().remaining());
      fails(ErrorCode.BUSY, () -> publisher.publish(bytes("x")));
      fails(ErrorCode.BUSY, () -> publisher.claim(1));
      publisher.close();
      equal(
          List.of("in place", "four", "aborted", "aborted", "aborted", "aborted"),
          texts(subscriber.poll(64)));
    }
  }

  void oldBuffersOfClaimsHarmOnlyTheTopic() {
    Topic topic = Topic.create("t", new TopicOptions());
    Publisher publisher = topic.publisher();
    Claim claim = publisher.claim(100);
    java.nio.ByteBuffer data = claim.data();
    claim.commit();
    publisher.close();
    topic.close();
    Topic.delete("t");
    for (int i = 0; i < 100; ++i) data.put(i, (byte) 1); // Must not end the program.
    claim.close();
  }

  void selectPartitionsByKey() {
    try (Topic topic = Topic.create("t", new TopicOptions().partitions(10));
        Publisher publisher = topic.publisher();
        Subscriber subscriber =
            topic.subscriber(new SubscriberOptions().from(From.beginning()).partition(6))) {
      publisher.publish(new NewRecord(bytes("v")).key(bytes("foobar")));
      Entry entry = subscriber.receive(Duration.ofSeconds(5));
      equal(6, entry.partition());
      fails(
          ErrorCode.INVALID_ARGUMENT, () -> publisher.publish(new NewRecord(bytes("v")).partition(10)));
      fails(IllegalArgumentException.class, () -> new NewRecord(bytes("v")).partition(-1));
    }
  }

  void becomeDurable() throws Exception {
    TopicOptions options = new TopicOptions().durable(Durability.FSYNC).capacityBytes(1 << 20);
    try (Topic topic = Topic.create("disk", options);
        Publisher publisher = topic.publisher();
        Publisher quick = topic.publisher(new PublisherOptions().acknowledge(Stage.COMMITTED));
        Subscriber subscriber = fromBeginning(topic)) {
      publisher.publish(bytes("kept"));
      equal(1L, publisher.durableOffset());
      equal(0L, publisher.lastOffset());
      quick.publish(bytes("later"));
      quick.requestSync();
      quick.flush();
      equal(2L, quick.durableOffset(0));
      check(quick.durableFd() > 2 && quick.roomFd(-1) > 2);
      equal(List.of("kept", "later"), texts(subscriber.poll(10)));
      topic.repair(Duration.ofSeconds(10));
    }
    Topic.delete("disk");
    try (Topic topic = Topic.create("t", new TopicOptions()); Publisher publisher = topic.publisher()) {
      fails(ErrorCode.NEEDS_DURABLE, () -> { publisher.flush(); return null; });
      fails(ErrorCode.NEEDS_GROWING, () -> topic.shrink());
    }
  }
}
