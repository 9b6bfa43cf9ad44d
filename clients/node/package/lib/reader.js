'use strict';
// What subscribers and members read: records and gaps, one by one, in batches, or with `for await`.

const { markAsUntransferable } = require('node:worker_threads');

const { native, errors, errorOf, check } = require('./native');
const { kInside, kNative, kStops, Stoppable, Limit, until } = require('./handle');
const { known, checkOptions } = require('./options');

const kPool = 64 * 1024;
const kMaxLimit = 65536;
const kLimit = 64;
const kFetch = Symbol('fetch');
const kTake = Symbol('take');
const kAhead = Symbol('ahead');
const kIsAhead = Symbol('is ahead');
const kPutBack = Symbol('put back');
const kIsReady = Symbol('is ready');

// As in src/addon.h and leat.h.
const kFields = 8;
const kHasKey = 1;
const kHasTimestamp = 2;
const kHasHeaders = 4;
const kIsGap = 8;
const kTokenSize = 64;

const kNoHeaders = Object.freeze([]);
const reasons = [];
for (let i = 0; i < 7; ++i) reasons.push(native.gapReason(i));

// What Buffer.from() makes, in less time.
const Slice = Buffer[Symbol.species];

class LeatRecord {
  constructor(value, key, headers, offset, partition, timestampMs) {
    this.value = value;
    this.key = key;
    this.headers = headers;
    this.offset = offset;
    this.partition = partition;
    this.timestampMs = timestampMs;
  }

  get isGap() {
    return false;
  }
}

// A record that a member holds.
class Delivery extends LeatRecord {
  #member;
  #tokens;
  #index;

  constructor(inside, value, key, headers, offset, partition, timestampMs, deliveries, member, tokens, index) {
    if (inside !== kInside) throw new TypeError('deliveries are made by members');  // The library trusts its tokens.
    super(value, key, headers, offset, partition, timestampMs);
    this.deliveries = deliveries;
    this.#member = member;
    this.#tokens = tokens;
    this.#index = index;
  }

  static isDelivery(value) {
    return typeof value === 'object' && value !== null && #member in value;
  }

  // Whether this member received it.
  static isOf(delivery, member) {
    return delivery.#member === member;
  }

  static tokensOf(delivery) {
    return delivery.#tokens;
  }

  static indexOf(delivery) {
    return delivery.#index;
  }
}
const { isDelivery, isOf, tokensOf, indexOf } = Delivery;
for (const name of ['isDelivery', 'isOf', 'tokensOf', 'indexOf']) delete Delivery[name];

// Offsets that will not be delivered.
class Gap {
  constructor(offset, count, partition, reason) {
    this.offset = offset;
    this.count = count;
    this.partition = partition;
    this.reason = reason;
  }

  get isGap() {
    return true;
  }
}

// [[name, value], …]. The sizes come from shared memory, which may hold anything.
function readHeaders(memory, at, size) {
  const view = new DataView(memory, at, size);
  const headers = [];
  for (let next = 0; size - next >= 8;) {
    const nameSize = view.getUint32(next, true);
    const valueSize = view.getUint32(next + 4, true);
    next += 8;
    if (nameSize + valueSize > size - next) break;
    headers.push([new Slice(memory, at + next, nameSize), new Slice(memory, at + next + nameSize, valueSize)]);
    next += nameSize + valueSize;
  }
  return headers;
}

let poolBytes = Buffer.alloc(0);
let poolUsed = 0;
let numbers = new Float64Array(kLimit * kFields);

// Who gives one value to another thread must not take the others with it.
function makeShared(size) {
  const bytes = Buffer.allocUnsafeSlow(size);
  markAsUntransferable(bytes.buffer);
  return bytes;
}

// Memory for `size` bytes of so many entries: a part of the pool, or some of its own.
function makeRoom(size, count) {
  if (size > kPool / 4) return count === 1 ? Buffer.allocUnsafeSlow(size) : makeShared(size);
  if (poolUsed + size > poolBytes.length) {
    poolBytes = makeShared(kPool);
    poolUsed = 0;
  }
  return poolBytes;
}

// The entries that the addon has just read for this handle: one buffer holds all their bytes.
function decode(handle, count, size, member) {
  if (count * kFields > numbers.length) numbers = new Float64Array(count * kFields);
  const room = makeRoom(size, count);
  let at = room === poolBytes ? poolUsed : 0;
  const memory = room.buffer;
  const tokens = member === undefined ? undefined : new Uint8Array(count * kTokenSize);
  check(native.copy(handle, numbers, room, at, tokens));
  if (room === poolBytes) poolUsed += size;
  const entries = new Array(count);
  for (let i = 0, field = 0; i < count; ++i, field += kFields) {
    const flags = numbers[field];
    const partition = numbers[field + 1];
    const offset = numbers[field + 2];
    const valueSize = numbers[field + 3];
    if (flags === 0 && tokens === undefined) {
      entries[i] = new LeatRecord(new Slice(memory, at, valueSize), null, kNoHeaders, offset, partition, null);
      at += valueSize;
      continue;
    }
    const headersSize = numbers[field + 5];
    if ((flags & kIsGap) !== 0) {
      entries[i] = new Gap(offset, valueSize, partition, reasons[headersSize] ?? 'unknown');
      continue;
    }
    const keySize = numbers[field + 4];
    const key = (flags & kHasKey) === 0 ? null : new Slice(memory, at, keySize);
    at += keySize;
    const headers = (flags & kHasHeaders) === 0 ? kNoHeaders : readHeaders(memory, at, headersSize);
    at += headersSize;
    const value = new Slice(memory, at, valueSize);
    at += valueSize;
    const timestampMs = (flags & kHasTimestamp) === 0 ? null : numbers[field + 6];
    entries[i] = tokens === undefined
      ? new LeatRecord(value, key, headers, offset, partition, timestampMs)
      : new Delivery(kInside, value, key, headers, offset, partition, timestampMs, numbers[field + 7], member, tokens, i);
  }
  return entries;
}

function checkLimit(limit = kLimit) {
  if (!Number.isInteger(limit) || limit < 1 || limit > kMaxLimit) {
    throw new TypeError(`a limit must be a whole number from 1 to ${kMaxLimit}`);
  }
  return limit;
}

// What `for await` asks. Whoever gives it up, also while it waits, loses no record.
class Entries {
  #reader;
  #signal;
  #cancel = new AbortController();
  #isOver = false;
  #waiting = 0;
  #last;  // The promise of the last next().

  constructor(reader, signal) {
    this.#reader = reader;
    this.#signal = signal;
  }

  next() {
    if (this.#waiting === 0 && !this.#isOver && !this.#signal?.aborted && this.#reader[kIsAhead]) {
      return Promise.resolve({ done: false, value: this.#reader[kTake](1)[0] });
    }
    // One after the other.
    ++this.#waiting;
    const before = this.#last;
    const stops = this.#reader[kStops];
    this.#last = (async () => {
      await before?.catch(() => {});
      try {
        if (this.#reader[kStops] !== stops) this.#isOver = true;
        return await this.#wait();
      } finally {
        --this.#waiting;
      }
    })();
    return this.#last;
  }

  async #wait() {
    if (this.#isOver) return { done: true, value: undefined };
    const pass = () => this.#cancel.abort();
    this.#signal?.addEventListener('abort', pass);
    try {
      this.#signal?.throwIfAborted();
      const value = await this.#reader.receive({ signal: this.#cancel.signal });
      if (!this.#cancel.signal.aborted) return { done: false, value };
      this.#reader[kPutBack](value);
    } catch (error) {
      const isCancelled = this.#cancel.signal.aborted;
      this.#isOver = true;
      // Stopped or closed is its end, as is return().
      if (!isCancelled && error?.code !== 'stopped') throw error;
    } finally {
      this.#signal?.removeEventListener('abort', pass);
    }
    this.#isOver = true;
    this.#signal?.throwIfAborted();
    return { done: true, value: undefined };
  }

  async return(value) {
    this.#isOver = true;
    this.#cancel.abort();
    return { done: true, value };
  }

  [Symbol.asyncIterator]() {
    return this;
  }
}

// Subclasses have [kFetch](limit), which has the addon read available entries, and says how many, and [kIsReady](), which
// only looks, and gives a code. Neither waits.
class Reader extends Stoppable {
  // Read and not given away.
  #ahead = [];
  #aheadAt = 0;
  #readsAhead;
  #holder;
  // Read and not copied, which happens without memory for that. How many, and of what size.
  #fetched = 0;
  #size = 0;

  // `holds`: the entries are deliveries.
  constructor(inside, handle, readsAhead, holds) {
    super(inside, handle);
    this.#readsAhead = readsAhead;
    this.#holder = holds ? this : undefined;
  }

  // The next entry. Waits for it.
  receive(options) {
    if (options === undefined && this[kIsAhead]) return Promise.resolve(this[kTake](1)[0]);
    return this.#receive(options);
  }

  async #receive(options) {
    const limit = new Limit(options);
    limit.checkAborted();
    return until(this, limit, () => this[kTake](1)[0]);
  }

  // Up to `limit` entries. Waits for the first.
  async receiveBatch(options) {
    const limit = new Limit(options, known.receiveBatch);
    const count = checkLimit(options?.limit);
    limit.checkAborted();
    return until(this, limit, () => {
      const entries = this[kTake](count);
      return entries.length === 0 ? undefined : entries;
    });
  }

  // Waits until reading may have something to do.
  async wait(options) {
    return untilReady(this, new Limit(options));
  }

  // What `for await` iterates over, with a signal that ends it.
  entries(options = {}) {
    checkOptions(options, known.entries);
    return new Entries(this, options.signal);
  }

  [Symbol.asyncIterator]() {
    return new Entries(this);
  }

  get [kIsAhead]() {
    return this.#ahead.length !== 0 && !this.closed;
  }

  get [kAhead]() {
    return this.#aheadAt === 0 ? this.#ahead : this.#ahead.slice(this.#aheadAt);
  }

  [kPutBack](entry) {
    this.#ahead = [entry, ...this[kAhead]];
    this.#aheadAt = 0;
  }

  #read(limit) {
    if (this.#fetched === 0 || this.closed) {
      this.#fetched = this[kFetch](limit);
      this.#size = numbers[0];
    }
    if (this.#fetched === 0) return [];
    const entries = decode(this[kNative], this.#fetched, this.#size, this.#holder);
    this.#fetched = 0;
    return entries;
  }

  // Available entries, at most `limit`.
  [kTake](limit) {
    if (this.#ahead.length === 0 || this.closed) {
      const entries = this.#read(limit === 1 ? this.#readsAhead : limit);
      if (entries.length <= limit) return entries;
      this.#ahead = entries;
    }
    const from = this.#aheadAt;
    this.#aheadAt = Math.min(from + limit, this.#ahead.length);
    const taken = limit === 1 ? [this.#ahead[from]] : this.#ahead.slice(from, this.#aheadAt);
    if (this.#aheadAt === this.#ahead.length) {
      this.#ahead = [];
      this.#aheadAt = 0;
    }
    return taken;
  }
}

// Waits with attempts that do not read, but let the descriptor wait if there is nothing. Errors are reported by reading.
async function untilReady(handle, limit) {
  limit.checkAborted();
  await until(handle, limit, () => {
    const code = handle[kIsReady]();
    if (code === -errors.timeout) return undefined;
    if (code === -errors.stopped) throw errorOf(errors.stopped);
    if (handle.closed) check(code);
    return true;
  });
}

module.exports = {
  kFetch, kTake, kAhead, kIsAhead, kLimit, kIsReady, LeatRecord, Delivery, Gap, Reader, checkLimit,
  isDelivery, isOf, tokensOf, indexOf, numbersOf: () => numbers,
};
