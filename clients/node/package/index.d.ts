// Leat for Node: topics in shared memory, which processes publish to and read from directly.
// Times are in milliseconds, sizes in bytes. Infinity is a wait without end.

/// <reference types="node" />
export type Bytes = NodeJS.ArrayBufferView | string;
export type NewHeaders = Iterable<readonly [Bytes, Bytes]> | { readonly [name: string]: Bytes };
export type From =
  | 'end'
  | 'beginning'
  | { readonly offset: number }
  | { readonly last: number }
  | { readonly time: number | Date };

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
  readonly code: ErrorCode;
  /** Of the code, in spec/errors.csv. */
  readonly number: number;
  /** The errno of the system call that failed, or the most bytes allowed, or 0. */
  readonly detail: number;
  constructor(code: ErrorCode, message: string, detail?: number);
}

/** name -> number of each code. */
export const errors: { readonly [code in ErrorCode | 'ok']: number };
export const version: string;

export interface WaitOptions {
  /** Infinity if it is missing. */
  readonly timeout?: number;
  /** Rejects with its reason. No record is lost. */
  readonly signal?: AbortSignal;
}

export interface Place {
  readonly directory?: string;
  readonly dataDirectory?: string;
}

export interface TopicOptions extends Place {
  readonly policy?: 'block' | 'fail' | 'overwrite' | 'grow';
  readonly capacityBytes?: number;
  readonly segmentBytes?: number;
  readonly maxCapacityBytes?: number;
  readonly growBelowBytes?: number;
  readonly partitions?: number;
  readonly participants?: number;
  readonly retainAll?: boolean;
  readonly singleWriter?: boolean;
  readonly timestamps?: boolean;
  readonly deleteWhenUnused?: boolean;
  readonly revokeAfter?: number;
  readonly evictAfter?: number;
  readonly mode?: number;
  readonly durable?: 'none' | 'os' | 'interval' | 'fsync';
  readonly syncInterval?: number;
  readonly fileBytes?: number;
  readonly retentionBytes?: number;
  readonly retention?: number;
  readonly fileGroup?: string;
}

export interface PublisherOptions {
  readonly partition?: number;
  readonly exclusive?: boolean;
  readonly acknowledge?: 'committed' | 'durable';
}

export interface SubscriberOptions {
  readonly from?: From;
  readonly partition?: number;
  readonly gating?: boolean;
  readonly inPlace?: boolean;
  readonly read?: 'committed' | 'durable';
  readonly patience?: number;
}

export interface GroupOptions {
  readonly from?: From;
  readonly mode?: 'at_least_once' | 'at_most_once';
  readonly byKey?: boolean;
  readonly members?: number;
  readonly inFlight?: number;
  readonly maxDeliveries?: number;
  readonly onExpired?: 'start' | 'end' | 'stop';
  readonly lease?: number;
}

/** Closing twice is allowed. Calls of a closed handle throw `invalid_argument`. */
declare class Handle {
  protected constructor();
  readonly closed: boolean;
  close(): void;
}

/** stop() and close() end waits: they reject with `stopped`. */
declare class Stoppable extends Handle {
  readonly stopped: boolean;
  stop(): void;
  resume(): void;
}

export class Topic extends Handle {
  static create(name: string, options?: TopicOptions): Promise<Topic>;
  static openOrCreate(name: string, options?: TopicOptions): Promise<Topic>;
  /** `timeout` is 0 if it is missing. */
  static open(name: string, options?: Place & WaitOptions): Promise<Topic>;
  static delete(name: string, options?: Place & { readonly force?: boolean }): Promise<void>;
  static list(options?: Place): Promise<string[]>;
  readonly name: string;
  readonly maxRecordSize: number;
  readonly partitions: number;
  /** What `leat topic info --json` prints. */
  info(): Promise<any>;
  setMaxCapacity(bytes: number): void;
  shrink(): Promise<number>;
  repair(options?: { readonly timeout?: number }): Promise<void>;
  publisher(options?: PublisherOptions): Publisher;
  subscriber(options?: SubscriberOptions): Subscriber;
  group(name: string, options?: GroupOptions): Promise<Group>;
  findGroup(name: string): Promise<Group>;
  deleteGroup(name: string, options?: { readonly force?: boolean }): Promise<void>;
  groupNames(): string[];
}

export interface NewRecordOptions {
  readonly key?: Bytes | null;
  readonly headers?: NewHeaders | null;
  readonly partition?: number | null;
}

export interface NewRecord {
  readonly value: Bytes;
  readonly key?: Bytes | null;
  readonly headers?: NewHeaders | null;
}

export interface BatchOptions {
  readonly partition?: number | null;
}

export class Publisher extends Stoppable {
  /** Never waits. If the topic is full, throws `full`. Returns the offset. */
  publish(value: Bytes, options?: NewRecordOptions): number;
  /**
   * Waits for room; an abort then publishes nothing. With `acknowledge: 'durable'`, waits for stable storage
   * afterwards, when the record is published.
   */
  publishAsync(value: Bytes, options?: NewRecordOptions & WaitOptions): Promise<number>;
  /** All become visible together. Returns the offset of the first. */
  publishBatch(values: Iterable<Bytes | NewRecord>, options?: BatchOptions): number;
  publishBatchAsync(
    values: Iterable<Bytes | NewRecord>,
    options?: BatchOptions & WaitOptions,
  ): Promise<number>;
  /** Publishes as many bytes as `fill` returns, or all. What it throws aborts the claim. Returns the offset. */
  claim(size: number, fill: (data: Buffer, offset: number) => number | void): number;
  claim(size: number): Claim;
  flush(options?: WaitOptions): Promise<void>;
  requestSync(): void;
  durableOffset(partition?: number): number;
  readonly lastOffset: number | null;
  readonly maxRecordSize: number;
  readonly partition: number;
}

export class Claim {
  private constructor();
  readonly offset: number;
  readonly data: Buffer;
  commit(size?: number): number;
  abort(): void;
}

export class Record {
  readonly value: Buffer;
  readonly key: Buffer | null;
  readonly headers: ReadonlyArray<readonly [Buffer, Buffer]>;
  readonly offset: number;
  readonly partition: number;
  readonly timestampMs: number | null;
  readonly isGap: false;
}

/** A record that a member holds. */
export class Delivery extends Record {
  private constructor();
  /** 1: the first delivery. */
  readonly deliveries: number;
}

/** Offsets that will not be delivered. */
export class Gap {
  readonly offset: number;
  readonly count: number;
  readonly partition: number;
  readonly reason: 'aborted' | 'died' | 'revoked' | 'overwritten' | 'damaged' | 'lost' | 'unknown';
  readonly isGap: true;
}

declare class Reader<Entry> extends Stoppable implements AsyncIterable<Entry> {
  receive(options?: WaitOptions): Promise<Entry>;
  receiveBatch(options?: WaitOptions & { readonly limit?: number }): Promise<Entry[]>;
  wait(options?: WaitOptions): Promise<void>;
  entries(options?: { readonly signal?: AbortSignal }): AsyncIterableIterator<Entry>;
  [Symbol.asyncIterator](): AsyncIterableIterator<Entry>;
}

export class Subscriber extends Reader<Record | Gap> {
  /** Never waits. An empty array: there is nothing. */
  poll(limit?: number): Array<Record | Gap>;
  offset(partition?: number): number;
  readonly isLossy: boolean;
}

/** Waits until one of the subscribers may have something to do; its index. */
export function waitAny(subscribers: Iterable<Subscriber>, options?: WaitOptions): Promise<number>;

export interface GroupInfo {
  readonly mode: 'at_least_once' | 'at_most_once';
  readonly byKey: boolean;
  readonly maxDeliveries: number;
  readonly lease: number;
  readonly onExpired: 'start' | 'end' | 'stop';
  readonly inFlightLimit: number;
  readonly lag: number;
  readonly inFlight: number;
  readonly redelivered: number;
  readonly returned: number;
  readonly returnedLimit: number;
  readonly deadLetters: number;
  readonly taking: ErrorCode | 'ok';
  readonly members: ReadonlyArray<{ readonly name: string; readonly pid: number; readonly inFlight: number }>;
  readonly offsets: readonly number[];
}

export class Group extends Handle {
  readonly name: string;
  readonly wasCreated: boolean;
  /** Empty without `maxDeliveries`. */
  readonly deadLetterTopic: string;
  join(options?: { readonly name?: string; readonly patience?: number }): Promise<Member>;
  info(): GroupInfo;
  seek(to: From, partition?: number): void;
  position(partition?: number): number;
  released(partition?: number): number;
}

export class Member extends Reader<Delivery | Gap> {
  /** One, or several: those are acknowledged that this member holds. Returns how many. */
  acknowledge(delivery: Delivery | Iterable<Delivery | Gap>): number;
  /** It, and all that this member received before. */
  acknowledgeUpTo(delivery: Delivery): number;
  acknowledgeAll(): number;
  requeue(delivery: Delivery, options?: { readonly delay?: number }): void;
  /** How many records it holds or has taken for its next calls. */
  readonly inFlight: number;
}
