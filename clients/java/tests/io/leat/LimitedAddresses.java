// If this failed, a Java program with limited addresses (ulimit -v) could neither publish nor read.
package io.leat;

import static io.leat.Tests.bytes;
import static io.leat.Tests.equal;
import static io.leat.Tests.fromBeginning;
import static io.leat.Tests.text;

import java.time.Duration;

/** Run with a limit of addresses: all are left to the runtime, and views and claims are copies. */
public final class LimitedAddresses {
  private LimitedAddresses() {}

  public static void main(String[] arguments) {
    try (Topic topic = Topic.create("t", new TopicOptions());
        Publisher publisher = topic.publisher();
        Subscriber subscriber = fromBeginning(topic)) {
      publisher.claim(5, claim -> claim.data().put(bytes("claim")));
      publisher.publish(new NewRecord(bytes("value")).key(bytes("key")));
      equal("claim", text(subscriber.receiveViews(1, Duration.ZERO).get(0).copy().value()));
      EntryView view = subscriber.receiveViews(1, Duration.ZERO).get(0);
      equal("value", text(view.copy().value()));
      equal("key", text(view.copy().key()));
      equal(0, Mirrors.mapped());
    }
    System.out.println("nothing is mapped twice");
  }
}
