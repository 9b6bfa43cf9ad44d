import io.leat.Entry;
import io.leat.EntryView;
import io.leat.From;
import io.leat.LeatException;
import io.leat.Publisher;
import io.leat.Subscriber;
import io.leat.SubscriberOptions;
import io.leat.Topic;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * What a record costs in Java, for {@code leat bench clients}: {@code java TOPIC SIZE RECORDS}. Prints nanoseconds as a
 * line of JSON. The topic holds all records. Each part runs twice, and the second time counts.
 */
public final class Speed {
  private static final int BATCH = 64;

  private static int seen; // So that the compiler cannot leave out looking at the values.

  public static void main(String[] arguments) {
    if (arguments.length != 3) {
      System.err.println("usage: java TOPIC SIZE RECORDS");
      System.exit(2);
    }
    byte[] value = new byte[Integer.parseInt(arguments[1])];
    int records = Integer.parseInt(arguments[2]);
    List<byte[]> values = new ArrayList<>(Collections.nCopies(BATCH, value));
    try (Topic topic = Topic.open(arguments[0])) {
      double publishNs = timePublishing(topic, records, publisher -> {
        for (int i = 0; i < records; ++i) publisher.publish(value);
      });
      double batchNs = timePublishing(topic, records, publisher -> {
        for (int i = 0; i < records; i += BATCH) publisher.publishBatch(values);
      });
      double readNs = timeReading(topic, records, Speed::read);
      double viewNs = timeReading(topic, records, Speed::view);
      System.out.printf(
          "{\"runtime\": \"Java %s\", \"publish_ns\": %.2f, \"batch_ns\": %.2f, \"read_ns\": %.2f, \"view_ns\": %.2f}%n",
          Runtime.version(), publishNs, batchNs, readNs, viewNs);
    } catch (LeatException failure) {
      System.err.println(failure.getMessage());
      System.exit(1);
    }
  }

  private interface Publishing {
    void publishAll(Publisher publisher);
  }

  private interface Reading {
    int readSome(Subscriber subscriber);
  }

  private static double timePublishing(Topic topic, int records, Publishing publishing) {
    try (Publisher publisher = topic.publisher()) {
      publishing.publishAll(publisher);
      long begin = System.nanoTime();
      publishing.publishAll(publisher);
      return (double) (System.nanoTime() - begin) / records;
    }
  }

  private static double timeReading(Topic topic, int records, Reading reading) {
    double ns = 0;
    for (int run = 0; run < 2; ++run) {
      try (Subscriber subscriber = topic.subscriber(new SubscriberOptions().from(From.last(records)))) {
        long begin = System.nanoTime();
        for (int left = records; left > 0; ) left -= reading.readSome(subscriber);
        ns = (double) (System.nanoTime() - begin) / records;
      }
    }
    return ns;
  }

  private static int read(Subscriber subscriber) {
    List<Entry> entries = subscriber.poll(BATCH);
    for (Entry entry : entries) {
      byte[] value = entry.value();
      seen += value[value.length - 1];
    }
    return entries.size();
  }

  private static int view(Subscriber subscriber) {
    List<EntryView> views = subscriber.pollViews(BATCH);
    for (EntryView view : views) {
      ByteBuffer value = view.value();
      seen += value.get(value.limit() - 1);
    }
    return views.size();
  }
}
