package peers;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.locks.LockSupport;

/** What each role does: the same steps, counts and words as in cpp/peer.hpp. */
final class Roles {
  private static final int REMEMBERED = 1 << 17;  // Several seconds of the survivor's records.
  private static final long PAUSE_NS = 100_000;
  static final int LOOK_AWAY_PAUSES = 1000;  // As in cpp/peer.hpp.

  private final Rival rival;
  private final Options options;
  private long sequence;  // The next one of the reader or the caller.
  private volatile long killedNs;

  Roles(Rival rival, Options options) {
    this.rival = rival;
    this.options = options;
  }

  static void run(Rival rival, String[] arguments) {
    Options options = new Options(arguments);
    Roles roles = new Roles(rival, options);
    Talk.runAsRole(switch (options.role) {
      case "writer" -> roles::write;
      case "reader" -> roles::read;
      case "caller" -> roles::call;
      case "answerer" -> roles::answer;
      case "victim" -> roles::beVictim;
      case "survivor" -> roles::survive;
      case "watcher" -> roles::watch;
      default -> throw new IllegalArgumentException("no such role: " + options.role);
    });
  }

  private static void publish(Rival.Sender sender, Payload payload, int size, long count) {
    for (long i = 0; i < count; i++) sender.send(payload.next(), size);
  }

  private void write() {
    Talk.say("ready");
    Talk.awaitGo();
    Payload payload = new Payload(options.size);
    Rival.Sender sender = rival.sender(options, "data");
    publish(sender, payload, options.size, options.warmUp);
    Talk.say("warm");
    Talk.awaitGo();
    long startedNs = System.nanoTime();
    publish(sender, payload, options.size, options.records);
    Talk.say("{\"started_ns\": " + startedNs + "}");
    Talk.awaitEnd();
  }

  private void take(long address, int length) {
    Payload.check(address, length, options.size, sequence++);
  }

  private void read() {
    Rival.Receiver receiver = rival.receiver(options, "data");
    Rival.OnRecord onRecord = this::take;
    Talk.say("ready");
    Talk.awaitGo();
    receive(receiver, onRecord, options.warmUp, LOOK_AWAY_PAUSES);
    Talk.say("warm");
    Talk.awaitGo();
    receive(receiver, onRecord, options.records, LOOK_AWAY_PAUSES);
    Talk.say("{\"ended_ns\": " + System.nanoTime() + "}");
    Talk.awaitEnd();
  }

  private static void receive(Rival.Receiver receiver, Rival.OnRecord onRecord, long count,
      int pauses) {
    for (long left = count; left > 0;) {
      int polled = receiver.poll(onRecord);
      if (polled == 0) pause(pauses);
      left -= polled;
    }
  }

  static void pause(int times) {
    for (int i = 0; i < times; i++) Thread.onSpinWait();
  }

  // --- Round trips -----------------------------------------------------------------------------

  private void call() {
    Rival.Receiver receiver = rival.receiver(options, "back");
    Talk.say("ready");
    Talk.awaitGo();
    Rival.Sender sender = rival.sender(options, "there");
    Payload payload = new Payload(options.size);
    Rival.OnRecord onRecord = this::take;
    // The warm-up includes both passes, so that the code of both is compiled before the time starts.
    pass(sender, receiver, onRecord, payload, options.warmUp / 2);
    timedPass(sender, receiver, onRecord, payload, new int[(int) ((options.warmUp + 1) / 2)]);
    int[] samplesNs = new int[(int) options.records];
    Talk.say("warm");
    Talk.awaitGo();

    long startedNs = System.nanoTime();
    pass(sender, receiver, onRecord, payload, options.records);
    long endedNs = System.nanoTime();
    timedPass(sender, receiver, onRecord, payload, samplesNs);
    writeSamples(Path.of(options.directory, "samples"), samplesNs);
    Talk.say("{\"started_ns\": " + startedNs + ", \"ended_ns\": " + endedNs + "}");
    Talk.awaitEnd();
  }

  private void pass(Rival.Sender sender, Rival.Receiver receiver, Rival.OnRecord onRecord,
      Payload payload, long count) {
    for (long i = 0; i < count; i++) callOnce(sender, receiver, onRecord, payload);
  }

  private void timedPass(Rival.Sender sender, Rival.Receiver receiver, Rival.OnRecord onRecord,
      Payload payload, int[] samplesNs) {
    long beforeNs = System.nanoTime();
    for (int i = 0; i < samplesNs.length; i++) {
      callOnce(sender, receiver, onRecord, payload);
      long afterNs = System.nanoTime();
      samplesNs[i] = (int) Math.min(afterNs - beforeNs, Integer.MAX_VALUE);
      beforeNs = afterNs;
    }
  }

  private void callOnce(Rival.Sender sender, Rival.Receiver receiver, Rival.OnRecord onRecord,
      Payload payload) {
    sender.send(payload.next(), options.size);
    while (receiver.poll(onRecord) == 0) Thread.onSpinWait();
  }

  private void answer() {
    Rival.Receiver receiver = rival.receiver(options, "there");
    Talk.say("ready");
    Talk.awaitGo();
    Rival.Sender sender = rival.sender(options, "back");
    Rival.OnRecord onRecord = sender::send;
    receive(receiver, onRecord, options.warmUp, 1);
    Talk.say("warm");
    Talk.awaitGo();
    receive(receiver, onRecord, 2 * options.records, 1);
    Talk.say("{}");
    Talk.awaitEnd();
  }

  static void writeSamples(Path file, int[] samplesNs) {
    ByteBuffer bytes =
        ByteBuffer.allocate(samplesNs.length * Integer.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    bytes.asIntBuffer().put(samplesNs);
    try {
      Files.write(file, bytes.array());
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  // --- A publisher dies --------------------------------------------------------------------------

  private void beVictim() {
    Talk.say("ready");
    Talk.awaitGo();
    long record = Memory.allocate(options.size);
    Rival.Sender sender = rival.sender(options, "data");
    sender.send(record, options.size);
    Talk.say("warm");
    while (true) sender.send(record, options.size);
  }

  private void survive() {
    Talk.say("ready");
    Talk.awaitGo();
    Thread listener = new Thread(() -> {
      for (String line = Talk.hear(); line != null; line = Talk.hear()) {
        killedNs = Long.parseLong(line);
      }
    });
    listener.setDaemon(true);
    listener.start();
    long record = Memory.allocate(options.size);
    Rival.Sender sender = rival.sender(options, "data");
    for (boolean isFirst = true; true; isFirst = false) {
      Memory.putLong(record, 1);
      Memory.putLong(record + 16, killedNs);  // Read before the clock, so the record is sent later.
      Memory.putLong(record + 8, System.nanoTime());
      sender.send(record, options.size);
      if (isFirst) Talk.say("warm");
      LockSupport.parkNanos(PAUSE_NS);
    }
  }

  private void watch() {
    Rival.Receiver receiver = rival.receiver(options, "data");
    Talk.say("ready");
    Talk.awaitGo();
    Watched watched = new Watched();
    boolean isWarm = false;
    while (watched.killedNs == 0) {
      if (receiver.poll(watched) == 0) Thread.onSpinWait();
      if (!isWarm && watched.hasSeenVictim && watched.count > 0) {
        isWarm = true;
        Talk.say("warm");
      }
    }
    Talk.say("{\"recovery_ns\": " + watched.recoveryNs() + "}");
    Talk.awaitEnd();
  }

  private static final class Watched implements Rival.OnRecord {
    private final long[] sentNs = new long[REMEMBERED];
    private final long[] receivedNs = new long[REMEMBERED];
    private long killedNs;
    private long count;
    private boolean hasSeenVictim;

    @Override
    public void accept(long address, int length) {
      if (Memory.getLong(address) != 1) {
        hasSeenVictim = true;
        return;
      }
      int at = (int) (count++ % REMEMBERED);
      sentNs[at] = Memory.getLong(address + 8);
      receivedNs[at] = System.nanoTime();
      if (killedNs == 0) killedNs = Memory.getLong(address + 16);
    }

    long recoveryNs() {
      for (long i = Math.max(0, count - REMEMBERED); i < count; i++) {
        int at = (int) (i % REMEMBERED);
        if (sentNs[at] >= killedNs) return receivedNs[at] - killedNs;
      }
      throw new IllegalStateException("no record was sent after the kill");
    }
  }
}
