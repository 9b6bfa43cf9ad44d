package peers;

import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import io.aeron.logbuffer.BufferClaim;
import io.aeron.logbuffer.FragmentHandler;
import java.util.concurrent.locks.LockSupport;
import org.agrona.concurrent.SleepingIdleStrategy;

/** Aeron over IPC; README.md gives the reasons for these settings. */
final class AeronPeer implements Rival {
  private static final int TERM_BYTES = 64 << 20;
  private static final long DRIVER_SLEEP_NS = 1_000_000;
  private static final int POLL_LIMIT = 256;

  public static void main(String[] arguments) {
    if (arguments.length > 0 && arguments[0].equals("driver")) {
      Talk.runAsRole(() -> drive(new Options(arguments)));
    } else {
      Roles.run(new AeronPeer(), arguments);
    }
  }

  private static String directoryOf(Options options) {
    return options.directory + "/aeron";
  }

  private static void drive(Options options) {
    MediaDriver.Context context = new MediaDriver.Context()
        .aeronDirectoryName(directoryOf(options))
        .threadingMode(ThreadingMode.SHARED)
        .sharedIdleStrategy(new SleepingIdleStrategy(DRIVER_SLEEP_NS))
        .ipcTermBufferLength(TERM_BYTES)
        .termBufferSparseFile(false)
        .performStorageChecks(false)
        .spiesSimulateConnection(false)
        .warnIfDirectoryExists(false);
    MediaDriver.launch(context);
    Talk.say("ready");
    Talk.awaitEnd();
    LockSupport.park();  // The driver is needed until run.py ends this process.
  }

  private Aeron aeron;

  /** One connection for both directions. */
  private Aeron aeron(Options options) {
    if (aeron == null) {
      aeron = Aeron.connect(new Aeron.Context()
          .aeronDirectoryName(directoryOf(options))
          .preTouchMappedMemory(true));
    }
    return aeron;
  }

  private static int streamOf(String channel) {
    return switch (channel) {
      case "data" -> 1;
      case "there" -> 2;
      default -> 3;
    };
  }

  @Override
  public Receiver receiver(Options options, String channel) {
    Subscription subscription = aeron(options).addSubscription("aeron:ipc", streamOf(channel));
    return new Receiver() {
      private OnRecord current;
      private FragmentHandler handler;

      @Override
      public int poll(OnRecord onRecord) {
        if (current != onRecord) {
          current = onRecord;
          handler = (buffer, offset, length, header) ->
              onRecord.accept(buffer.addressOffset() + offset, length);
        }
        return subscription.poll(handler, POLL_LIMIT);
      }
    };
  }

  @Override
  public Sender sender(Options options, String channel) {
    return options.isOnlyPublisher() ? exclusive(options, channel) : shared(options, channel);
  }

  private Sender exclusive(Options options, String channel) {
    ExclusivePublication publication =
        aeron(options).addExclusivePublication("aeron:ipc", streamOf(channel));
    while (!publication.isConnected()) Thread.onSpinWait();
    BufferClaim claim = new BufferClaim();
    return (address, length) -> {
      for (long result; (result = publication.tryClaim(length, claim)) < 0;) expectRoom(result);
      copyTo(claim, address, length);
    };
  }

  private Sender shared(Options options, String channel) {
    Publication publication = aeron(options).addPublication("aeron:ipc", streamOf(channel));
    while (!publication.isConnected()) Thread.onSpinWait();
    BufferClaim claim = new BufferClaim();
    return (address, length) -> {
      for (long result; (result = publication.tryClaim(length, claim)) < 0;) expectRoom(result);
      copyTo(claim, address, length);
    };
  }

  private static void copyTo(BufferClaim claim, long address, int length) {
    Memory.copy(address, claim.buffer().addressOffset() + claim.offset(), length);
    claim.commit();
  }

  private static void expectRoom(long result) {
    if (result == Publication.CLOSED || result == Publication.MAX_POSITION_EXCEEDED) {
      throw new IllegalStateException("cannot publish: " + Publication.errorString(result));
    }
    Thread.onSpinWait();
  }
}
