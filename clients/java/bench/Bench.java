import io.leat.Entry;
import io.leat.EntryView;
import io.leat.From;
import io.leat.Publisher;
import io.leat.Subscriber;
import io.leat.SubscriberOptions;
import io.leat.Topic;
import io.leat.TopicOptions;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.function.Consumer;

/**
 * Publishes all into a topic that holds all, then reads all. Prints nanoseconds for each record, the median of the
 * runs, as a line of JSON.
 *
 * <pre>java -cp leat.jar:classes Bench [SIZE [RECORDS [RUNS]]]</pre>
 */
public final class Bench {
  private static final int BATCH = 64;
  private static final int WARM_UPS = 3; // Until the compiler has seen all.
  private static final String NAME = "leat-bench-java";

  public static void main(String[] arguments) {
    int size = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 100;
    int records = (arguments.length > 1 ? Integer.parseInt(arguments[1]) : 1_000_000) / BATCH * BATCH;
    int runs = arguments.length > 2 ? Integer.parseInt(arguments[2]) : 5;
    byte[] value = new byte[size];
    List<byte[]> values = new ArrayList<>(Collections.nCopies(BATCH, value));
    double[][] ns = new double[4][runs];
    for (int run = -WARM_UPS; run < runs; ++run) {
      double[] once = new double[4];
      try (Topic topic = newTopic(size, records)) {
        once[0] = time(topic.publisher(), records, by -> publish(by, value, records));
        once[2] = time(subscriber(topic), records, by -> read(by, records));
        once[3] = time(subscriber(topic), records, by -> view(by, records));
      }
      try (Topic topic = newTopic(size, records)) {
        once[1] = time(topic.publisher(), records, by -> publishBatches(by, values, records));
      }
      for (int i = 0; run >= 0 && i < 4; ++i) ns[i][run] = once[i];
    }
    Topic.delete(NAME, true);
    for (double[] all : ns) Arrays.sort(all);
    System.out.printf(
        "{\"runtime\": \"Java %s\", \"publish_ns\": %.1f, \"batch_ns\": %.1f, \"read_ns\": %.1f, \"view_ns\": %.1f}%n",
        Runtime.version(), ns[0][runs / 2], ns[1][runs / 2], ns[2][runs / 2], ns[3][runs / 2]);
  }

  private static Topic newTopic(int size, int records) {
    if (Topic.list().contains(NAME)) Topic.delete(NAME, true);
    long capacity = (long) records * (size + 40) + (16 << 20);
    return Topic.create(NAME, new TopicOptions().capacityBytes(capacity).segmentBytes(8 << 20));
  }

  /** Nanoseconds for each record. Making the handle maps the topic: that is not what is measured. */
  private static <H extends AutoCloseable> double time(H made, int records, Consumer<H> phase) {
    try (H handle = made) {
      long begin = System.nanoTime();
      phase.accept(handle);
      return (double) (System.nanoTime() - begin) / records;
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
  }

  private static void publish(Publisher publisher, byte[] value, int records) {
    for (int i = 0; i < records; ++i) publisher.publish(value);
  }

  private static void publishBatches(Publisher publisher, List<byte[]> values, int records) {
    for (int i = 0; i < records; i += BATCH) publisher.publishBatch(values);
  }

  private static Subscriber subscriber(Topic topic) {
    return topic.subscriber(new SubscriberOptions().from(From.beginning()));
  }

  private static void read(Subscriber subscriber, int records) {
    long bytes = 0;
    for (int left = records; left > 0; ) {
      List<Entry> entries = subscriber.poll(BATCH);
      for (Entry entry : entries) bytes += entry.value().length;
      left -= entries.size();
    }
    if (bytes == 0) throw new AssertionError();
  }

  private static void view(Subscriber subscriber, int records) {
    long bytes = 0;
    for (int left = records; left > 0; ) {
      List<EntryView> views = subscriber.pollViews(BATCH);
      for (EntryView view : views) {
        ByteBuffer value = view.value();
        bytes += value.remaining() + value.get(0);
      }
      left -= views.size();
    }
    if (bytes == 0) throw new AssertionError();
  }
}
