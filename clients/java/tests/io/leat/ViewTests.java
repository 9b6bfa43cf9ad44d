// If these failed, a buffer that outlives its batch would crash the virtual machine, or its topic's
// memory would stay mapped for ever.
package io.leat;

import static io.leat.Tests.bytes;
import static io.leat.Tests.check;
import static io.leat.Tests.equal;
import static io.leat.Tests.eventually;
import static io.leat.Tests.fails;
import static io.leat.Tests.fromBeginning;
import static io.leat.Tests.text;

import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

final class ViewTests {
  private static String read(ByteBuffer buffer) {
    byte[] copy = new byte[buffer.remaining()];
    buffer.duplicate().get(copy);
    return text(copy);
  }

  void showWhatCopiesAre() {
    try (Topic topic = Topic.create("t", new TopicOptions().timestamps(true));
        Publisher publisher = topic.publisher();
        Subscriber subscriber = fromBeginning(topic)) {
      publisher.publish(new NewRecord(bytes("value")).key(bytes("key")).header("name", bytes("one")));
      publisher.claim(1).close();
      publisher.publish(bytes("plain"));
      List<EntryView> views = subscriber.receiveViews(64, Duration.ofSeconds(5));
      equal(3, views.size());
      EntryView view = views.get(0);
      equal("value", read(view.value()));
      equal("key", read(view.key()));
      equal("one", text(view.headers().get(0).value()));
      equal(5, view.valueSize());
      check(Math.abs(view.timestampMs() - System.currentTimeMillis()) < 10_000);
      check(view.value().isReadOnly() && view.value().isDirect());
      fails(ReadOnlyBufferException.class, () -> view.value().put(0, (byte) 1));
      equal("key", text(view.copy().key()));
      equal(view.timestampMs(), view.copy().timestampMs());
      EntryView gap = views.get(1);
      check(gap.isGap() && gap.value() == null && gap.key() == null && gap.headers().isEmpty());
      equal(GapReason.ABORTED, gap.gapReason());
      equal(1L, gap.gapCount());
      equal("plain", read(views.get(2).value()));
      check(views.get(2).key() == null);
      equal(List.of(), subscriber.pollViews(1));
    }
  }

  void stayReadableWhateverIsClosed() throws Exception {
    areUnmappedWhenTheLastIsGone();
    Topic topic = Topic.create("t", new TopicOptions());
    Publisher publisher = topic.publisher();
    Subscriber subscriber = fromBeginning(topic);
    publisher.publish(bytes("early"));
    EntryView view = subscriber.pollViews(1).get(0);
    ByteBuffer value = view.value();
    equal(1, Mirrors.mapped());
    subscriber.close();
    publisher.close();
    topic.close();
    Topic.delete("t", true);
    for (int i = 0; i < 5; ++i) System.gc();
    Thread.sleep(50);
    equal("early", read(value));
    equal("early", text(view.copy().value()));
    equal(1, Mirrors.mapped());
    java.lang.ref.Reference.reachabilityFence(topic);
  }

  void areUnmappedWhenTheLastIsGone() throws Exception {
    eventually(
        () -> {
          System.gc();
          return Mirrors.mapped() == 0;
        });
  }

  void lateOnesShowOtherBytes() {
    TopicOptions options = new TopicOptions().policy(Policy.OVERWRITE).capacityBytes(65536).segmentBytes(8192);
    try (Topic topic = Topic.create("t", options);
        Publisher publisher = topic.publisher();
        Subscriber subscriber = topic.subscriber(new SubscriberOptions().inPlace(true))) {
      List<EntryView> kept = new ArrayList<>();
      for (int i = 0; i < 2000; ++i) {
        publisher.publish(bytes("x".repeat(1 + i % 900)));
        kept.addAll(subscriber.pollViews(64));
      }
      long sum = 0;
      for (EntryView view : kept) {
        if (view.isGap()) continue;
        for (ByteBuffer bytes = view.value(); bytes.hasRemaining(); ) sum += bytes.get();
        view.copy();
      }
      check(sum > 0);
    }
  }

  void ofCopiesAreCopies() {
    TopicOptions options = new TopicOptions().policy(Policy.OVERWRITE).capacityBytes(65536).segmentBytes(8192);
    try (Topic topic = Topic.create("t", options);
        Publisher publisher = topic.publisher();
        Subscriber subscriber = topic.subscriber(new SubscriberOptions().lossy(true))) {
      for (int i = 0; i < 20_000; ++i) {
        publisher.publish(new NewRecord(bytes("value " + i)).key(bytes("key " + i)));
        if (i % 20 != 19) continue;
        for (int next = i - 19; next <= i; ) {
          for (EntryView view : subscriber.pollViews(64)) {
            equal("value " + next, read(view.value()));
            equal("key " + next++, read(view.key()));
          }
        }
      }
    }
  }

  void ofManyTopicsAreFreed() throws Exception {
    ByteBuffer kept = null;
    for (int i = 0; i < 2000; ++i) {
      TopicOptions options =
          new TopicOptions().capacityBytes(65536).segmentBytes(8192).deleteWhenUnused(true);
      try (Topic topic = Topic.create("t" + i, options);
          Publisher publisher = topic.publisher();
          Subscriber subscriber = topic.subscriber()) {
        publisher.publish(bytes("x"));
        kept = subscriber.pollViews(1).get(0).value();
      }
    }
    equal("x", read(kept));
    check(Mirrors.mapped() < 1500);
  }
}
