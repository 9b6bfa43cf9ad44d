import io.leat.*;

/** Publishes a record and reads the topic back: java -cp leat-0.1.0.jar Hello.java */
public class Hello {
  public static void main(String[] arguments) {
    try (Topic topic = Topic.openOrCreate("greetings");
        Publisher publisher = topic.publisher();
        Subscriber subscriber = topic.subscriber(new SubscriberOptions().from(From.beginning()))) {
      publisher.publish("hello from Java".getBytes());
      for (var entries = subscriber.poll(64); !entries.isEmpty(); entries = subscriber.poll(64)) {
        for (Entry entry : entries) if (!entry.isGap()) System.out.println(new String(entry.value()));
      }
    }
  }
}
