package peers;

import com.lmax.disruptor.AlertException;
import com.lmax.disruptor.BatchEventProcessor;
import com.lmax.disruptor.BatchEventProcessorBuilder;
import com.lmax.disruptor.BusySpinWaitStrategy;
import com.lmax.disruptor.EventHandler;
import com.lmax.disruptor.EventPoller;
import com.lmax.disruptor.RingBuffer;
import com.lmax.disruptor.Sequence;
import com.lmax.disruptor.SequenceBarrier;
import com.lmax.disruptor.WaitStrategy;
import java.nio.file.Path;

/** LMAX Disruptor: both sides are threads of this process. */
final class DisruptorPeer {
  private static final int RING_BYTES = 8 << 20;  // As much as the topic of `leat bench log`.

  /** A slot with memory for one record. */
  private static final class Slot {
    private long address;
  }

  /** BusySpinWaitStrategy with the pauses of cpp/peer.hpp. */
  private static final class BackOffWaitStrategy implements WaitStrategy {
    @Override
    public long waitFor(long sequence, Sequence cursor, Sequence dependent, SequenceBarrier barrier)
        throws AlertException {
      for (long available; true; Roles.pause(Roles.LOOK_AWAY_PAUSES)) {
        if ((available = dependent.get()) >= sequence) return available;
        barrier.checkAlert();
      }
    }

    @Override
    public void signalAllWhenBlocking() {}
  }

  private final Options options;
  private final Payload payload;
  private long expected;           // Used by the side that checks.
  private volatile long received;  // By the consumer; written once for each batch.

  private DisruptorPeer(Options options) {
    this.options = options;
    payload = new Payload(options.size);
  }

  public static void main(String[] arguments) {
    DisruptorPeer peer = new DisruptorPeer(new Options(arguments));
    Talk.runAsRole(switch (peer.options.role) {
      case "oneway" -> peer::oneWay;
      case "pingpong" -> peer::pingPong;
      default -> throw new IllegalArgumentException("no such role: " + peer.options.role);
    });
  }

  private RingBuffer<Slot> newRing(WaitStrategy waitStrategy) {
    int stride = (options.size + 63) / 64 * 64;  // No two records on one cache line.
    int slots = Integer.highestOneBit(RING_BYTES / stride);
    RingBuffer<Slot> ring = RingBuffer.createSingleProducer(Slot::new, slots, waitStrategy);
    long memory = (Memory.allocate((long) slots * stride + 63) + 63) / 64 * 64;
    for (int i = 0; i < slots; i++) ring.get(i).address = memory + (long) i * stride;
    return ring;
  }

  private void publish(RingBuffer<Slot> ring, long from) {
    long sequence = ring.next();
    Memory.copy(from, ring.get(sequence).address, options.size);
    ring.publish(sequence);
  }

  private static void consume(RingBuffer<Slot> ring, EventHandler<Slot> handler) {
    BatchEventProcessor<Slot> processor =
        new BatchEventProcessorBuilder().build(ring, ring.newBarrier(), handler);
    ring.addGatingSequences(processor.getSequence());
    Thread thread = new Thread(processor, "role2");
    thread.setDaemon(true);
    thread.start();
  }

  private void awaitReceived(long count) {
    while (received < count) Thread.onSpinWait();
  }

  private void oneWay() {
    RingBuffer<Slot> ring = newRing(new BackOffWaitStrategy());
    long all = options.warmUp + options.records;
    long[] endedNs = new long[1];  // Published by `received`.
    consume(ring, (slot, sequence, endOfBatch) -> {
      Payload.check(slot.address, options.size, options.size, sequence);
      if (sequence + 1 == all) endedNs[0] = System.nanoTime();
      if (endOfBatch) received = sequence + 1;
    });
    Talk.say("ready");
    Talk.awaitGo();
    publishAll(ring, options.warmUp);
    awaitReceived(options.warmUp);
    Talk.say("warm");
    Talk.awaitGo();
    long startedNs = System.nanoTime();
    publishAll(ring, options.records);
    awaitReceived(all);
    Talk.say("{\"started_ns\": " + startedNs + ", \"ended_ns\": " + endedNs[0] + "}");
    Talk.awaitEnd();
  }

  private void publishAll(RingBuffer<Slot> ring, long count) {
    for (long i = 0; i < count; i++) publish(ring, payload.next());
  }

  private void pingPong() {
    RingBuffer<Slot> there = newRing(new BusySpinWaitStrategy());
    RingBuffer<Slot> back = newRing(new BusySpinWaitStrategy());
    consume(there, (slot, sequence, endOfBatch) -> publish(back, slot.address));
    EventPoller<Slot> poller = back.newPoller();
    back.addGatingSequences(poller.getSequence());
    EventPoller.Handler<Slot> check = (slot, sequence, endOfBatch) -> {
      Payload.check(slot.address, options.size, options.size, expected++);
      return false;
    };
    Talk.say("ready");
    Talk.awaitGo();
    timedPass(there, poller, check, new int[(int) ((options.warmUp + 1) / 2)]);
    pass(there, poller, check, options.warmUp / 2);
    int[] samplesNs = new int[(int) options.records];
    Talk.say("warm");
    Talk.awaitGo();

    long startedNs = System.nanoTime();
    pass(there, poller, check, options.records);
    long endedNs = System.nanoTime();
    timedPass(there, poller, check, samplesNs);
    Roles.writeSamples(Path.of(options.directory, "samples"), samplesNs);
    Talk.say("{\"started_ns\": " + startedNs + ", \"ended_ns\": " + endedNs + "}");
    Talk.awaitEnd();
  }

  private void pass(RingBuffer<Slot> there, EventPoller<Slot> poller,
      EventPoller.Handler<Slot> check, long count) {
    for (long i = 0; i < count; i++) call(there, poller, check);
  }

  private void timedPass(RingBuffer<Slot> there, EventPoller<Slot> poller,
      EventPoller.Handler<Slot> check, int[] samplesNs) {
    long beforeNs = System.nanoTime();
    for (int i = 0; i < samplesNs.length; i++) {
      call(there, poller, check);
      long afterNs = System.nanoTime();
      samplesNs[i] = (int) Math.min(afterNs - beforeNs, Integer.MAX_VALUE);
      beforeNs = afterNs;
    }
  }

  private void call(RingBuffer<Slot> there, EventPoller<Slot> poller,
      EventPoller.Handler<Slot> check) {
    publish(there, payload.next());
    try {
      while (poller.poll(check) != EventPoller.PollState.PROCESSING) Thread.onSpinWait();
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }
}
