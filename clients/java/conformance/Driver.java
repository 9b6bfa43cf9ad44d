import io.leat.Claim;
import io.leat.Delivery;
import io.leat.Durability;
import io.leat.Entry;
import io.leat.EntryView;
import io.leat.ErrorCode;
import io.leat.Group;
import io.leat.GroupInfo;
import io.leat.GroupMode;
import io.leat.GroupOptions;
import io.leat.Handle;
import io.leat.Header;
import io.leat.LeatException;
import io.leat.Member;
import io.leat.MemberOptions;
import io.leat.NewRecord;
import io.leat.Policy;
import io.leat.Publisher;
import io.leat.PublisherOptions;
import io.leat.Stage;
import io.leat.Subscriber;
import io.leat.SubscriberOptions;
import io.leat.Topic;
import io.leat.TopicInfo;
import io.leat.TopicOptions;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/** The driver of the Java client: tests/conformance/README.md says what it reads and prints. */
public final class Driver {
  private static final int BATCH = 64;

  private final Map<String, AutoCloseable> handles = new HashMap<>();
  private final Map<String, Claim> claims = new HashMap<>();
  private final Map<String, List<Delivery>> deliveries = new HashMap<>();

  private <T> T get(Class<T> type, String name) {
    return type.cast(handles.get(name));
  }

  private String made(String name, AutoCloseable handle) {
    handles.put(name, handle);
    return "";
  }

  // ---- Topics and publishers ------------------------------------------------------------------

  private static TopicOptions topicOptions(Words words) {
    TopicOptions options = new TopicOptions();
    if (words.has("policy")) options.policy(Policy.valueOf(upper(words.option("policy"))));
    if (words.has("durable")) options.durable(Durability.valueOf(upper(words.option("durable"))));
    if (words.has("sync_interval")) options.syncInterval(words.millis("sync_interval"));
    return options
        .capacityBytes(words.number("capacity", 0))
        .segmentBytes(words.number("segment", 0))
        .partitions((int) words.number("partitions", 1))
        .timestamps(words.flag("timestamps"))
        .retainAll(words.flag("retain_all"));
  }

  private static String upper(String text) {
    return text.toUpperCase(Locale.ROOT);
  }

  private String info(Words words) {
    TopicInfo info = get(Topic.class, words.word(1)).info();
    long end = info.partitions().stream().mapToLong(TopicInfo.PartitionInfo::end).sum();
    return " partitions=" + info.partitions().size() + " end=" + end;
  }

  private String publisher(Words words) {
    PublisherOptions options = new PublisherOptions().exclusive(words.flag("exclusive"));
    if (words.has("partition")) options.partition((int) words.number("partition", 0));
    if (words.has("acknowledge")) options.acknowledge(Stage.valueOf(upper(words.option("acknowledge"))));
    return made(words.word(1), get(Topic.class, words.word(2)).publisher(options));
  }

  private String publish(Words words) {
    Publisher publisher = get(Publisher.class, words.word(1));
    boolean isPlain = !words.has("key") && !words.has("header") && !words.has("partition");
    if (isPlain) return " offset=" + publisher.publish(words.value(), words.timeout(0));
    NewRecord record = new NewRecord(words.value());
    if (words.has("key")) record.key(Words.decode(words.option("key")));
    for (String header : words.options("header")) {
      int colon = header.indexOf(':');
      record.header(
          new Header(
              Words.decode(header.substring(0, colon)), Words.decode(header.substring(colon + 1))));
    }
    if (words.has("partition")) record.partition((int) words.number("partition", 0));
    return " offset=" + publisher.publish(record, words.timeout(0));
  }

  private String batch(Words words) {
    List<byte[]> values = new ArrayList<>();
    for (String value : words.options("value")) values.add(Words.decode(value));
    if (words.has("prefix")) {
      for (long i = 0; i < words.number("count", 1); ++i) {
        values.add(Words.bytes(words.option("prefix") + i));
      }
    }
    int partition = (int) words.number("partition", -1);
    return " offset="
        + get(Publisher.class, words.word(1)).publishBatch(values, partition, words.timeout(0));
  }

  private String claim(Words words) {
    Publisher publisher = get(Publisher.class, words.word(1));
    Claim claim = publisher.claim((int) words.number("size", 0), words.timeout(0));
    claims.put(words.word(1), claim);
    return " offset=" + claim.offset();
  }

  private String commit(Words words) {
    Claim claim = claims.get(words.word(1));
    byte[] value = words.value();
    if (claim.isOpen() && value.length <= claim.size()) claim.data().put(value);
    claim.commit(value.length);
    return "";
  }

  private static final class Abandoned extends Exception {
    private static final long serialVersionUID = 1;
  }

  private String abandon(Words words) {
    try {
      get(Publisher.class, words.word(1)).claim(16, claim -> { throw new Abandoned(); });
      throw new AssertionError("the exception is gone");
    } catch (Abandoned expected) {
      return "";
    }
  }

  // ---- Subscribers ----------------------------------------------------------------------------

  private String subscriber(Words words) {
    SubscriberOptions options = new SubscriberOptions().from(words.from("from"));
    if (words.flag("lossy")) options.lossy(true);
    if (words.flag("in_place")) options.inPlace(true);
    if (words.has("partition")) options.partition((int) words.number("partition", 0));
    return made(words.word(1), get(Topic.class, words.word(2)).subscriber(options));
  }

  private static void print(StringBuilder out, Entry entry, String tail) {
    out.append(entry.isGap() ? "gap" : "record");
    out.append(" partition=").append(entry.partition()).append(" offset=").append(entry.offset());
    if (entry.isGap()) {
      out.append(" count=").append(entry.gapCount());
      out.append(" reason=").append(entry.gapReason().text()).append('\n');
      return;
    }
    out.append(" value=").append(Words.encode(entry.value()));
    if (entry.key() != null) out.append(" key=").append(Words.encode(entry.key()));
    for (Header header : entry.headers()) {
      out.append(" header=").append(Words.encode(header.name()));
      out.append(':').append(Words.encode(header.value()));
    }
    if (entry.timestampMs() >= 0) out.append(" timestamp=").append(entry.timestampMs());
    out.append(tail).append('\n');
  }

  private String poll(Words words, StringBuilder out) {
    Subscriber subscriber = get(Subscriber.class, words.word(1));
    for (Entry entry : subscriber.poll((int) words.number("limit", BATCH))) print(out, entry, "");
    return "";
  }

  private String take(Words words, StringBuilder out, boolean inPlace) {
    Subscriber subscriber = get(Subscriber.class, words.word(1));
    for (long left = words.number("count", 1); left > 0; ) {
      int limit = (int) Math.min(left, BATCH);
      Duration timeout = words.timeout(10_000);
      List<Entry> entries =
          inPlace
              ? subscriber.receiveViews(limit, timeout).stream().map(EntryView::copy).toList()
              : subscriber.receive(limit, timeout);
      for (Entry entry : entries) {
        print(out, entry, "");
        if (!entry.isGap()) --left;
      }
    }
    return "";
  }

  private String await(Words words) {
    AutoCloseable handle = handles.get(words.word(1));
    if (handle instanceof Member member) member.await(words.timeout(0));
    else get(Subscriber.class, words.word(1)).await(words.timeout(0));
    return "";
  }

  private String waitAny(Words words) {
    List<Subscriber> all = words.names(1).stream().map(name -> get(Subscriber.class, name)).toList();
    return " index=" + Subscriber.waitAny(all, words.timeout(0));
  }

  // ---- Groups ---------------------------------------------------------------------------------

  private String group(Words words) {
    GroupOptions options =
        new GroupOptions()
            .from(words.from("from"))
            .byKey(words.flag("by_key"))
            .lease(words.millis("lease"))
            .maxDeliveries((int) words.number("max_deliveries", 0));
    if (words.has("mode")) options.mode(GroupMode.valueOf(upper(words.option("mode"))));
    if (words.has("in_flight")) options.inFlight((int) words.number("in_flight", 0));
    Group group = get(Topic.class, words.word(2)).group(words.word(3), options);
    made(words.word(1), group);
    return " created=" + (group.wasCreated() ? 1 : 0);
  }

  private String groupInfo(Words words) {
    GroupInfo info = get(Group.class, words.word(1)).info();
    return " returned=" + info.returned() + " taking=" + info.taking().text();
  }

  private String seek(Words words) {
    Group group = get(Group.class, words.word(1));
    if (words.has("partition")) group.seek(words.from("to"), (int) words.number("partition", 0));
    else group.seek(words.from("to"));
    return "";
  }

  private String join(Words words) {
    deliveries.put(words.word(1), new ArrayList<>());
    MemberOptions options = new MemberOptions().name(words.option("name"));
    return made(words.word(1), get(Group.class, words.word(2)).join(options));
  }

  private String receive(Words words, StringBuilder out) {
    Member member = get(Member.class, words.word(1));
    List<Delivery> all = deliveries.get(words.word(1));
    for (Delivery one : member.receiveBatch((int) words.number("limit", 1), words.timeout(0))) {
      print(out, one, " delivery=" + all.size() + " deliveries=" + one.deliveries());
      all.add(one);
    }
    return "";
  }

  private Delivery delivery(Words words, int index) {
    return deliveries.get(words.word(1)).get(Integer.parseInt(words.word(index)));
  }

  private String acknowledge(Words words) {
    Member member = get(Member.class, words.word(1));
    int count = words.names(2).size();
    if (count == 1) {
      member.acknowledge(delivery(words, 2));
      return " count=1";
    }
    List<Delivery> some = new ArrayList<>();
    for (int i = 0; i < count; ++i) some.add(delivery(words, i + 2));
    return " count=" + member.acknowledge(some);
  }

  // ---- All kinds of handles, and the loop -----------------------------------------------------

  private String errorNames(StringBuilder out) {
    for (ErrorCode code : ErrorCode.values()) {
      out.append(code.number()).append(' ').append(code.text()).append('\n');
    }
    return "";
  }

  private String run(Words words, StringBuilder out) throws Exception {
    String first = words.names(1).isEmpty() ? "" : words.word(1);
    int partition = (int) words.number("partition", 0);
    return switch (words.word(0)) {
      case "create" -> made(first, Topic.create(words.word(2), topicOptions(words)));
      case "open" -> made(first, Topic.open(words.word(2), words.timeout(0)));
      case "delete" -> done(() -> Topic.delete(first, words.flag("force")));
      case "info" -> info(words);
      case "publisher" -> publisher(words);
      case "publish" -> publish(words);
      case "batch" -> batch(words);
      case "claim" -> claim(words);
      case "commit" -> commit(words);
      case "abort" -> done(() -> claims.get(first).abort());
      case "abandon" -> abandon(words);
      case "flush" -> done(() -> get(Publisher.class, first).flush(words.timeout(10_000)));
      case "durable_offset" -> " offset=" + get(Publisher.class, first).durableOffset();
      case "subscriber" -> subscriber(words);
      case "poll" -> poll(words, out);
      case "take" -> take(words, out, false);
      case "view" -> take(words, out, true);
      case "wait" -> await(words);
      case "wait_any" -> waitAny(words);
      case "offset" -> " offset=" + get(Subscriber.class, first).offset(partition);
      case "group" -> group(words);
      case "find_group" -> made(first, get(Topic.class, words.word(2)).findGroup(words.word(3)));
      case "delete_group" ->
          done(() -> get(Topic.class, first).deleteGroup(words.word(2), words.flag("force")));
      case "group_info" -> groupInfo(words);
      case "seek" -> seek(words);
      case "position" -> " offset=" + get(Group.class, first).position(partition);
      case "join" -> join(words);
      case "receive" -> receive(words, out);
      case "acknowledge" -> acknowledge(words);
      case "acknowledge_up_to" ->
          " count=" + get(Member.class, first).acknowledgeUpTo(delivery(words, 2));
      case "acknowledge_all" -> " count=" + get(Member.class, first).acknowledgeAll();
      case "requeue" ->
          done(() -> get(Member.class, first).requeue(delivery(words, 2), words.millis("delay")));
      case "in_flight" -> " count=" + get(Member.class, first).inFlight();
      case "stop" -> done(() -> get(Handle.class, first).stop());
      case "resume" -> done(() -> get(Handle.class, first).resume());
      case "close" -> close(first);
      case "error_names" -> errorNames(out);
      default -> null;
    };
  }

  private static String done(Runnable command) {
    command.run();
    return "";
  }

  private String close(String name) throws Exception {
    handles.remove(name).close();
    return "";
  }

  private String answer(String line) {
    StringBuilder out = new StringBuilder();
    try {
      if (line.startsWith("fork ")) return "not_applicable Java programs do not fork\n";
      Words words = new Words(line);
      if (words.isBad()) return "error bad_command\n";
      if (words.has("own_thread")) return "not_applicable every handle may be used by any thread\n";
      String results = run(words, out);
      out.append(results == null ? "error unknown_command" : "ok" + results).append('\n');
    } catch (LeatException error) {
      out.append("error ").append(error.name()).append('\n');
    } catch (Exception error) {
      throw new IllegalStateException(line, error);
    }
    return out.toString();
  }

  public static void main(String[] arguments) throws IOException {
    Driver driver = new Driver();
    CompletableFuture<String> started = null;
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null && !line.equals("quit"); line = in.readLine()) {
      if (line.startsWith("start ")) {
        String command = line.substring(6);
        CompletableFuture<String> answer = new CompletableFuture<>();
        started = answer;
        Thread thread = new Thread(() -> answer.complete(driver.answer(command)));
        thread.setDaemon(true);
        thread.start();
        System.out.print("ok\n");
      } else if (line.equals("finish")) {
        System.out.print(started.join());
      } else {
        System.out.print(driver.answer(line));
      }
      System.out.flush();
    }
    System.exit(0); // Closing nothing.
  }
}
