package io.leat;

/** Options of a publisher. */
public final class PublisherOptions {
  final Options values = new Options(3);
  Stage acknowledge = Stage.DEFAULT;

  /** Every option has its default. */
  public PublisherOptions() {}

  /**
   * Of records that have no key; if not set, publishers take the partitions in turn.
   *
   * @param partition a partition, from 0
   * @return this
   */
  public PublisherOptions partition(int partition) {
    values.setCount(0, partition, "partition");
    return this;
  }

  /**
   * The topic's only publisher; cheaper for each record.
   *
   * @param exclusive true if it shall be so; false is the default
   * @return this
   */
  public PublisherOptions exclusive(boolean exclusive) {
    values.set(1, exclusive);
    return this;
  }

  /**
   * How far a record has come when publishing returns.
   *
   * @param acknowledge the stage
   * @return this
   */
  public PublisherOptions acknowledge(Stage acknowledge) {
    this.acknowledge = acknowledge;
    values.set(2, acknowledge);
    return this;
  }
}
