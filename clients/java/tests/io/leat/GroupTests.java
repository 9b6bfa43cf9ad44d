// If these failed, a record that nobody finished would be lost instead of going to another member,
// or members of a deleted group would wait for ever.
package io.leat;

import static io.leat.Tests.bytes;
import static io.leat.Tests.check;
import static io.leat.Tests.equal;
import static io.leat.Tests.fails;
import static io.leat.Tests.texts;

import java.time.Duration;
import java.util.List;

final class GroupTests {
  private static final Duration SOON = Duration.ofSeconds(5);

  void shareRecords() {
    try (Topic topic = Topic.create("t", new TopicOptions());
        Publisher publisher = topic.publisher();
        Group group =
            topic.group("workers", new GroupOptions().from(From.beginning()).maxDeliveries(5))) {
      check(group.wasCreated() && !topic.findGroup("workers").wasCreated());
      publisher.publishBatch(List.of(bytes("a"), bytes("b"), bytes("c"), bytes("d"), bytes("e")));
      Member one = group.join(new MemberOptions().name("one"));
      Delivery first = one.receive(SOON);
      equal(1, first.deliveries());
      one.acknowledge(first);
      fails(ErrorCode.NOT_IN_FLIGHT, () -> { one.acknowledge(first); return null; });
      List<Delivery> two = one.receiveBatch(2, SOON);
      equal(List.of("b", "c"), texts(two));
      equal(2L, one.acknowledge(two));
      equal(0L, one.acknowledge(List.of()));
      Delivery returned = one.receive(SOON);
      one.requeue(returned);
      Delivery again = one.receive(SOON);
      equal("d", Tests.text(again.value()));
      equal(2, again.deliveries());
      one.requeue(again, Duration.ofMillis(20));
      GroupInfo info = group.info();
      equal("one", info.members().get(0).name());
      equal(GroupMode.AT_LEAST_ONCE, info.mode());
      equal(ErrorCode.OK, info.taking());
      equal(5, info.maxDeliveries());
      equal(1, info.offsets().size());
      Delivery later = one.receive(SOON); // d or e: whether the delay is over by now nobody knows.
      equal(1L, one.acknowledgeUpTo(later));
      check(one.receive(SOON).offset() != later.offset());
      check(one.inFlight() >= 1);
      equal(1L, one.acknowledgeAll());
      fails(ErrorCode.TIMEOUT, () -> one.receive(Duration.ofMillis(20)));
      equal(5L, group.position(0));
      group.seek(From.offset(4), 0);
      equal(4L, group.position(0));
      group.seek(From.beginning());
      check(group.released(0) >= 0);
      equal("a", Tests.text(one.receive(SOON).value()));
      one.close(); // Without acknowledging.
      try (Member other = group.join()) {
        equal("a", Tests.text(other.receive(SOON).value()));
      }
      equal("workers", group.name());
      equal("t.workers.dead", group.deadLetterTopic());
      equal(List.of("workers"), topic.groupNames());
    }
  }

  void areDeletedUnderTheirMembers() {
    try (Topic topic = Topic.create("t", new TopicOptions());
        Group group = topic.group("g");
        Member member = group.join()) {
      fails(ErrorCode.BUSY, () -> { topic.deleteGroup("g"); return null; });
      topic.deleteGroup("g", true);
      fails(ErrorCode.CLOSED, () -> member.receive(null));
      fails(ErrorCode.NOT_FOUND, () -> topic.findGroup("g"));
    }
  }
}
