package io.leat;

/** Options of a publisher. */
public final class PublisherOptions {
  final Options values = new Options(3);
  Stage acknowledge = Stage.DEFAULT;

  /** Of records that have no key; if not set, publishers take the partitions in turn. */
  public PublisherOptions partition(int partition) {
    values.setCount(0, partition, "partition");
    return this;
  }

  /** The topic's only publisher; cheaper for each record. */
  public PublisherOptions exclusive(boolean exclusive) {
    values.set(1, exclusive);
    return this;
  }

  /** How far a record has come when publishing returns. */
  public PublisherOptions acknowledge(Stage acknowledge) {
    this.acknowledge = acknowledge;
    values.set(2, acknowledge);
    return this;
  }
}
