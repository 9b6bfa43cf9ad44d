package peers;

/** The two ends of a channel between processes, as in cpp/peer.hpp. */
interface Rival {
  /** Called for each record, which is valid during the call. */
  interface OnRecord {
    void accept(long address, int length);
  }

  interface Receiver {
    /** Passes on what is there; returns how many records, possibly 0. */
    int poll(OnRecord onRecord);
  }

  interface Sender {
    /** Copies the record from that address to where receivers see it; waits for room. */
    void send(long address, int length);
  }

  /** Makes the channel. */
  Receiver receiver(Options options, String channel);

  /** Joins it. */
  Sender sender(Options options, String channel);
}
