// Leat for Node: topics in shared memory, which processes publish to and read from directly.
// Times are in milliseconds, sizes in bytes. Infinity is a wait without end.

/// <reference types="node" />
/// <reference lib="esnext.disposable" />
export {};

/** What can be published: a Buffer, a typed array or a DataView; or a string, which becomes UTF-8. */
export type Bytes = NodeJS.ArrayBufferView | string;
/** Headers to publish: pairs, a Map, or an object. Only the former can name one twice. */
export type NewHeaders = Iterable<readonly [Bytes, Bytes]> | { readonly [name: string]: Bytes };
/**
 * Where a subscriber or a group begins: at the `end`, with records published from now on; at the `beginning`, with the
 * oldest record that can be read; with the record at `offset`; with the `last` so many records of each partition; or
 * with the first record that is not older than `time`, in milliseconds since 1970, of a topic with timestamps.
 */
export type From =
  | 'end'
  | 'beginning'
  | { readonly offset: number }
  | { readonly last: number }
  | { readonly time: number | Date };

/** Which error it is. The same in every language: spec/errors.csv. */
export type ErrorCode =
  | 'invalid_argument'
  | 'not_found'
  | 'exists'
  | 'busy'
  | 'permission'
  | 'wrong_format'
  | 'corrupt'
  | 'full'
  | 'no_space'
  | 'too_large'
  | 'timeout'
  | 'stopped'
  | 'deleted'
  | 'forked'
  | 'revoked'
  | 'would_deadlock'
  | 'not_allowed'
  | 'too_many'
  | 'unsupported'
  | 'in_flight_full'
  | 'redelivery_full'
  | 'not_in_flight'
  | 'lease_lost'
  | 'closed'
  | 'buffer_too_small'
  | 'io_error'
  | 'read_only'
  | 'not_durable'
  | 'expired'
  | 'interrupted'
  | 'no_memory'
  | 'needs_durable'
  | 'needs_timestamps'
  | 'needs_growing'
  | 'not_with_overwrite'
  | 'not_with_durable';

/** What the library returned. A later library may know more codes. */
export class LeatError extends Error {
  /** The name of the error. */
  readonly code: ErrorCode;
  /** Of the code, in spec/errors.csv. */
  readonly number: number;
  /** The errno of the system call that failed, or the most bytes allowed, or 0. */
  readonly detail: number;
  /** Only tests need to make one. */
  constructor(code: ErrorCode, message: string, detail?: number);
}

/** name -> number of each code. */
export const errors: { readonly [code in ErrorCode | 'ok']: number };
/** The version of the library, for example `0.1.0`. */
export const version: string;

/** How long a call waits. An option that no call has is a `TypeError`, here as everywhere. */
export interface WaitOptions {
  /** Milliseconds. Infinity if it is missing; 0 does not wait. */
  readonly timeout?: number;
  /** Rejects with its reason. No record is lost. */
  readonly signal?: AbortSignal;
}

/** Where topics are, if not in the default directories. */
export interface Place {
  /** Of topics: `$LEAT_DIR` if it is missing, else `/dev/shm/leat-<uid>`. */
  readonly directory?: string;
  /** Of durable topics: `$LEAT_DATA_DIR` if it is missing, else the user's data directory. */
  readonly dataDirectory?: string;
}

/** Options of a new topic. Sizes in bytes, rounded up to whole segments and pages; times in milliseconds. */
export interface TopicOptions extends Place {
  /**
   * What happens when it is full: publishers wait (`block`, if it is missing) or get `full` (`fail`), the room of the
   * oldest records is reused (`overwrite`), or memory is added up to a maximum before anybody waits (`grow`).
   */
  readonly policy?: 'block' | 'fail' | 'overwrite' | 'grow';
  /** Per partition. 8 MiB, durable topics 32 MiB. */
  readonly capacityBytes?: number;
  /** An eighth of the capacity; at most 1 GiB. */
  readonly segmentBytes?: number;
  /** Policy `grow`, per partition. 8 times the capacity. */
  readonly maxCapacityBytes?: number;
  /** Policy `grow`: adds memory at so little free. A segment. */
  readonly growBelowBytes?: number;
  /** How many, 1 to 1024; records keep their order within one. 1. */
  readonly partitions?: number;
  /** Publishers, subscribers and members at a time, 1 to 4096. 256. */
  readonly participants?: number;
  /** Never reuse room; publishing throws `full` at the end. */
  readonly retainAll?: boolean;
  /** Every publisher is exclusive. */
  readonly singleWriter?: boolean;
  /** Records have timestamps. */
  readonly timestamps?: boolean;
  /** Once it was used, delete it when the last process closes it. */
  readonly deleteWhenUnused?: boolean;
  /** Milliseconds: revoke a claim that is open for so long while a subscriber waits. Never. */
  readonly revokeAfter?: number;
  /** Milliseconds: make a gating subscriber lossy that blocks for so long. Never. */
  readonly evictAfter?: number;
  /** Permission bits of the files, of which 0o600 is required. 0o600. */
  readonly mode?: number;
  /**
   * What survives what: gone when the machine restarts (`none`, if it is missing), also written to disk (`os`), synced to
   * stable storage at intervals (`interval`), or before publishing returns (`fsync`).
   */
  readonly durable?: 'none' | 'os' | 'interval' | 'fsync';
  /** Milliseconds between syncs, with `durable: 'interval'`; 1 ms to 1 h. */
  readonly syncInterval?: number;
  /** Durable topics: size of a file with records. 64 MiB. */
  readonly fileBytes?: number;
  /** Durable topics: keep so much on disk, in whole files. No limit. */
  readonly retentionBytes?: number;
  /** Durable topics: keep records for so many milliseconds. No limit. */
  readonly retention?: number;
  /** Unix group of the files. The caller's. */
  readonly fileGroup?: string;
}

/** Options of a publisher. */
export interface PublisherOptions {
  /** Of records that have no key. In turn, if it is missing. */
  readonly partition?: number;
  /** The topic's only publisher; cheaper per record. */
  readonly exclusive?: boolean;
  /** How far a record has come when publishing returns. Durable with `durable: 'fsync'`, otherwise committed. */
  readonly acknowledge?: 'committed' | 'durable';
}

/** Options of a subscriber. */
export interface SubscriberOptions {
  /** Where it begins. At the end. */
  readonly from?: From;
  /** The partition that it reads. All of them. */
  readonly partition?: number;
  /** Publishers keep what it has not read. Otherwise it is lossy, and may be overtaken. true. */
  readonly gating?: boolean;
  /** With `gating: false`: pins the segment that it reads instead of copying. */
  readonly inPlace?: boolean;
  /** How far a record must have come to be delivered. */
  readonly read?: 'committed' | 'durable';
  /** Milliseconds that an empty poll pauses after many records; 0: none. 0.02. */
  readonly patience?: number;
}

/** Options of a new group. */
export interface GroupOptions {
  /** Where it begins. At the end. */
  readonly from?: From;
  /** Whether records that were not acknowledged are delivered again (`at_least_once`, if it is missing). */
  readonly mode?: 'at_least_once' | 'at_most_once';
  /** Records of one key go to one member at a time, in order. */
  readonly byKey?: boolean;
  /** Members at a time, 1 to 255. 64. */
  readonly members?: number;
  /** Unacknowledged records that a member may hold, 1 to 65536. 1024. */
  readonly inFlight?: number;
  /** After so many deliveries a record goes to the dead-letter topic; at most 65534. 0: no limit. */
  readonly maxDeliveries?: number;
  /** Where it goes on if retention deleted its next record: at the oldest, at the end, or nowhere, with `expired`. */
  readonly onExpired?: 'start' | 'end' | 'stop';
  /** Milliseconds after which a record that a member holds goes to another. Never. */
  readonly lease?: number;
}

/** What has to be closed. Closing twice is allowed. Calls of a closed handle throw `invalid_argument`. */
export class Handle {
  /** Only topics and groups make handles. */
  protected constructor(...inside: never[]);
  /** Whether it was closed. */
  readonly closed: boolean;
  /** Leaves the topic. Ends waits, which reject with `stopped`. */
  close(): void;
  /** Closes, at the end of a block with `using` or `await using`. */
  [Symbol.dispose](): void;
}

/** stop() and close() end waits: they reject with `stopped`. */
export class Stoppable extends Handle {
  /** Whether waits are stopped. */
  readonly stopped: boolean;
  /** Ends the waits that have begun and, until resume(), those that begin. What is available is still delivered. */
  stop(): void;
  /** Lets later calls wait again. Those that stop() ended stay ended. */
  resume(): void;
}

/** A log in shared memory that every process of a machine opens directly. */
export class Topic extends Handle {
  /** Creates a topic and opens it. `exists` if there is one. */
  static create(name: string, options?: TopicOptions): Promise<Topic>;
  /** Opens the topic if it exists, whatever its options are; otherwise creates it. */
  static openOrCreate(name: string, options?: TopicOptions): Promise<Topic>;
  /** Opens a topic, and waits until it was created. `timeout` is 0 if it is missing. */
  static open(name: string, options?: Place & WaitOptions): Promise<Topic>;
  /** Deletes a topic and frees its name. `force`: also while it has participants, which get `deleted`. */
  static delete(name: string, options?: Place & { readonly force?: boolean }): Promise<void>;
  /** The names of all topics, sorted. */
  static list(options?: Place): Promise<string[]>;
  /** The topic's name. */
  readonly name: string;
  /** Bytes of the largest record: key, headers, timestamp and value together, encoded. */
  readonly maxRecordSize: number;
  /** How many it has. */
  readonly partitions: number;
  /** What `leat topic info --json` prints, as an object. */
  info(): Promise<any>;
  /** Policy `grow`: sets how far each partition may grow from now on, in bytes. */
  setMaxCapacity(bytes: number): void;
  /** Policy `grow`: frees idle memory, and returns how many bytes. */
  shrink(): Promise<number>;
  /** A durable topic that is read-only: makes it writable again, once the cause is fixed. */
  repair(options?: { readonly timeout?: number }): Promise<void>;
  /** Makes a publisher. */
  publisher(options?: PublisherOptions): Publisher;
  /** Makes a subscriber. */
  subscriber(options?: SubscriberOptions): Subscriber;
  /** Opens the consumer group of that name, or creates it; the options apply only then. */
  group(name: string, options?: GroupOptions): Promise<Group>;
  /** Opens an existing group; `not_found` if there is none. */
  findGroup(name: string): Promise<Group>;
  /** Deletes a group. `force`: also while it has members, which get `closed`. */
  deleteGroup(name: string, options?: { readonly force?: boolean }): Promise<void>;
  /** The names of the topic's groups, sorted. */
  groupNames(): string[];
}

/** What a record has beside its value. */
export interface NewRecordOptions {
  /** Also selects the partition. An empty key is not the same as none. */
  readonly key?: Bytes | null;
  /** Named values that travel with it. */
  readonly headers?: NewHeaders | null;
  /** Overrides the partition that the key selects. */
  readonly partition?: number | null;
}

/** A record of a batch. */
export interface NewRecord {
  /** What is published. */
  readonly value: Bytes;
  /** An empty key is not the same as none. */
  readonly key?: Bytes | null;
  /** Named values that travel with it. */
  readonly headers?: NewHeaders | null;
}

/** What the records of a batch have in common. */
export interface BatchOptions {
  /** The partition of all. If it is missing, the one of the first key, or else the publisher's. */
  readonly partition?: number | null;
}

/** A participant of a topic that publishes. */
export class Publisher extends Stoppable {
  /** Publishes one record, and returns its offset. Never waits: throws `full` if the topic is. */
  publish(value: Bytes, options?: NewRecordOptions): number;
  /**
   * Publishes one record, and waits for room; an abort then publishes nothing. With `acknowledge: 'durable'`, waits for
   * stable storage afterwards, when the record is published.
   */
  publishAsync(value: Bytes, options?: NewRecordOptions & WaitOptions): Promise<number>;
  /** Publishes all, which become visible together, and returns the offset of the first. Never waits. */
  publishBatch(values: Iterable<Bytes | NewRecord>, options?: BatchOptions): number;
  /** The same, but waits as publishAsync() does. */
  publishBatchAsync(
    values: Iterable<Bytes | NewRecord>,
    options?: BatchOptions & WaitOptions,
  ): Promise<number>;
  /** Publishes as many bytes as `fill` returns, or all. What it throws aborts the claim. Returns the offset. */
  claim(size: number, fill: (data: Buffer, offset: number) => number | void): number;
  /** Claims room for a value of `size` bytes, which subscribers wait for until it is committed or aborted. */
  claim(size: number): Claim;
  /** Durable topics: waits until everything that this publisher has published is on stable storage. */
  flush(options?: WaitOptions): Promise<void>;
  /** Durable topics: asks for the same, and does not wait. */
  requestSync(): void;
  /** Durable topics: the offset before which everything is on stable storage. 0 for other topics. */
  durableOffset(partition?: number): number;
  /** The offset that was published last with `acknowledge: 'durable'`, with or without an error of the disk. */
  readonly lastOffset: number | null;
  /** Bytes of the largest record: key, headers, timestamp and value together, encoded. */
  readonly maxRecordSize: number;
  /** The partition of records that have no key. */
  readonly partition: number;
}

/** Room for one record. One that is dropped is aborted by the garbage collector, in time or not. */
export class Claim {
  private constructor();
  /** The record's offset. */
  readonly offset: number;
  /** Where to write the value: zeros, which are copied into the log by commit(). */
  readonly data: Buffer;
  /** Publishes the first `size` bytes of the data, or all. Returns the offset. */
  commit(size?: number): number;
  /** Gives the room up: subscribers see a gap. */
  abort(): void;
}

/** A record as it was delivered. Its bytes are copies. */
export class LeatRecord {
  protected constructor();
  /** What was published. */
  readonly value: Buffer;
  /** null without a key, which is not the same as an empty one. */
  readonly key: Buffer | null;
  /** Pairs of name and value, in the order in which they were published. */
  readonly headers: ReadonlyArray<readonly [Buffer, Buffer]>;
  /** Its number in the partition, counted from 0. Exact up to 2^53. */
  readonly offset: number;
  /** The partition in which it lay. */
  readonly partition: number;
  /** When it was published, in milliseconds since 1970; null without timestamps. */
  readonly timestampMs: number | null;
  /** false: this is a record. */
  readonly isGap: false;
}

/** A record that a member holds. */
export class Delivery extends LeatRecord {
  private constructor();
  /** 1: the first delivery. */
  readonly deliveries: number;
}

/** Offsets that will not be delivered. */
export class Gap {
  private constructor();
  /** The first one. */
  readonly offset: number;
  /** How many. */
  readonly count: number;
  /** The partition in which they lie. */
  readonly partition: number;
  /** Why they hold no record. */
  readonly reason: 'aborted' | 'died' | 'revoked' | 'overwritten' | 'damaged' | 'lost' | 'unknown';
  /** true: this is no record. */
  readonly isGap: true;
}

/** What subscribers and members have in common. */
export class Reader<Entry> extends Stoppable implements AsyncIterable<Entry> {
  /** Waits for the next entry. */
  receive(options?: WaitOptions): Promise<Entry>;
  /** Waits for the next entry, and returns up to `limit` (64 if it is missing) of those that are there. */
  receiveBatch(options?: WaitOptions & { readonly limit?: number }): Promise<Entry[]>;
  /** Waits until reading may have something to do. */
  wait(options?: WaitOptions): Promise<void>;
  /** What `for await` iterates over, with a signal that ends it. */
  entries(options?: { readonly signal?: AbortSignal }): AsyncIterableIterator<Entry>;
  /** Iterates until stop() or close(). Leaving the loop loses no record. */
  [Symbol.asyncIterator](): AsyncIterableIterator<Entry>;
}

/** A participant of a topic that reads all records, or those of one partition. */
export class Subscriber extends Reader<LeatRecord | Gap> {
  /** Up to `limit` (64 if it is missing) available entries, oldest first within a partition. Never waits; may be empty. */
  poll(limit?: number): Array<LeatRecord | Gap>;
  /** The offset of the next entry in a partition (0 if it is missing). */
  offset(partition?: number): number;
  /** Whether it may be overtaken: it was made lossy, or was evicted. */
  readonly isLossy: boolean;
}

/** Waits until one of up to 64 subscribers may have something to do; its index. */
export function waitAny(subscribers: Iterable<Subscriber>, options?: WaitOptions): Promise<number>;

/** A snapshot of a group. */
export interface GroupInfo {
  /** As in GroupOptions. */
  readonly mode: 'at_least_once' | 'at_most_once';
  /** As in GroupOptions. */
  readonly byKey: boolean;
  /** 0: no limit. */
  readonly maxDeliveries: number;
  /** Milliseconds; 0: never. */
  readonly lease: number;
  /** As in GroupOptions. */
  readonly onExpired: 'start' | 'end' | 'stop';
  /** How many records a member may hold. */
  readonly inFlightLimit: number;
  /** Records that no member has taken yet. */
  readonly lag: number;
  /** Taken or returned, and not acknowledged. */
  readonly inFlight: number;
  /** Deliveries after the first. */
  readonly redelivered: number;
  /** Waiting for redelivery or for their key. */
  readonly returned: number;
  /** How many may wait so at a time. */
  readonly returnedLimit: number;
  /** Records that went to the dead-letter topic. */
  readonly deadLetters: number;
  /** `redelivery_full`: no room for returned records. */
  readonly taking: ErrorCode | 'ok';
  /** Alive now. */
  readonly members: ReadonlyArray<{ readonly name: string; readonly pid: number; readonly inFlight: number }>;
  /** By partition, the offset of the next record to be taken. */
  readonly offsets: readonly number[];
}

/** A consumer group: its members share the records of a topic. */
export class Group extends Handle {
  /** The group's name. */
  readonly name: string;
  /** Whether the call that returned it also created the group. */
  readonly wasCreated: boolean;
  /** The name of the dead-letter topic. Empty without `maxDeliveries`. */
  readonly deadLetterTopic: string;
  /** Makes a member. `name` is informational, at most 63 bytes; `patience` is as in SubscriberOptions. */
  join(options?: { readonly name?: string; readonly patience?: number }): Promise<Member>;
  /** A snapshot of the group. */
  info(): GroupInfo;
  /** Moves the group's position, in one partition or in all. Records that members hold stay theirs. */
  seek(to: From, partition?: number): void;
  /** The offset of the next record to be taken. */
  position(partition?: number): number;
  /** How many records, at least, the group is done with, counted from offset 0. */
  released(partition?: number): number;
}

/** A member of a group. Closing it leaves the group: records that it has not acknowledged go to other members. */
export class Member extends Reader<Delivery | Gap> {
  /** One, or several: those are acknowledged that this member holds. Returns how many. */
  acknowledge(delivery: Delivery | Iterable<Delivery | Gap>): number;
  /** It, and all that this member received before. Returns how many. */
  acknowledgeUpTo(delivery: Delivery): number;
  /** All that this member holds. Returns how many. */
  acknowledgeAll(): number;
  /** Makes the record available to any member again, after `delay` milliseconds, or at once. */
  requeue(delivery: Delivery, options?: { readonly delay?: number }): void;
  /** How many records it holds or has taken for its next calls. */
  readonly inFlight: number;
}
