import io.leat.*;

/** Publishes a record and reads it: java -cp leat-0.1.0.jar Hello.java */
public class Hello {
  public static void main(String[] arguments) {
    try (Topic topic = Topic.openOrCreate("greetings");
        Subscriber subscriber = topic.subscriber();
        Publisher publisher = topic.publisher()) {
      publisher.publish("hello from Java".getBytes());
      System.out.println(new String(subscriber.receive(null).value()));
    }
  }
}
