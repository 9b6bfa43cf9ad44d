package peers;

import net.openhft.chronicle.bytes.Bytes;
import net.openhft.chronicle.bytes.BytesStore;
import net.openhft.chronicle.bytes.PointerBytesStore;
import net.openhft.chronicle.queue.ChronicleQueue;
import net.openhft.chronicle.queue.ExcerptAppender;
import net.openhft.chronicle.queue.ExcerptTailer;
import net.openhft.chronicle.queue.impl.single.SingleChronicleQueueBuilder;
import net.openhft.chronicle.queue.rollcycles.LargeRollCycles;
import net.openhft.chronicle.wire.DocumentContext;

/** Chronicle Queue with its files in shared memory, which only grow. */
final class ChroniclePeer implements Rival {
  private static final long BLOCK_BYTES = 256L << 20;

  public static void main(String[] arguments) {
    Roles.run(new ChroniclePeer(), arguments);
  }

  private static ChronicleQueue open(Options options, String channel) {
    return SingleChronicleQueueBuilder.binary(options.directory + "/" + channel)
        .rollCycle(LargeRollCycles.LARGE_DAILY)
        .blockSize(BLOCK_BYTES)
        .build();
  }

  @Override
  public Receiver receiver(Options options, String channel) {
    ExcerptTailer tailer = open(options, channel).createTailer();
    return onRecord -> {
      try (DocumentContext document = tailer.readingDocument()) {
        if (!document.isPresent()) return 0;
        Bytes<?> bytes = document.wire().bytes();
        onRecord.accept(bytes.addressForRead(bytes.readPosition()), (int) bytes.readRemaining());
        return 1;
      }
    };
  }

  @Override
  public Sender sender(Options options, String channel) {
    ExcerptAppender appender = open(options, channel).createAppender();
    PointerBytesStore record = BytesStore.nativePointer();
    return (address, length) -> {
      record.set(address, length);
      appender.writeBytes(record);
    };
  }
}
