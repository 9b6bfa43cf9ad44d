'use strict';
// Publishing. The event loop is never blocked: publish() throws `full`, publishAsync() waits for room.

const { native, errors, errorOf, check, checkPartition } = require('./native');
const { kInside, kRoom, kDurable, Stoppable, Limit, Turns, until } = require('./handle');
const { known, checkOptions } = require('./options');
const { bytes, isBytes, flatHeaders, copyOf, pack } = require('./bytes');
const { LeatRecord } = require('./reader');

const { publish } = native;  // Found once: that takes as long as the rest of the call.
const kSyncAgain = 50;  // ms, after which flush() checks whether writing has failed.

// A claim that nobody will finish is aborted. What is held is no claim, so this keeps none.
const dropped = new FinalizationRegistry(({ handle, offset }) => native.abort(handle, offset));

function checkSize(size) {
  if (!Number.isSafeInteger(size) || size < 0) throw new TypeError('a size must be a whole number that is not negative');
  return size;
}

// Room for one record, which commit() fills. Its `data` is memory of its own: a log that another thread could write to
// after the commit would not be safe.
class Claim {
  #handle;
  #offset;
  #data;

  constructor(inside, handle, offset, size) {
    if (inside !== kInside) throw new TypeError('claims are made by publishers');
    this.#handle = handle;
    this.#offset = offset;
    this.#data = Buffer.alloc(size);
    dropped.register(this, { handle, offset }, this);
  }

  get offset() {
    return this.#offset;
  }

  get data() {
    return this.#data;
  }

  // Publishes the first `size` bytes of the data. Returns the offset.
  commit(size = this.#data.length) {
    check(native.commit(this.#handle, this.#offset, this.#data, checkSize(size)));
    dropped.unregister(this);
    return this.#offset;
  }

  // Gives the room up: subscribers see a gap.
  abort() {
    check(native.abort(this.#handle, this.#offset));
    dropped.unregister(this);
  }
}

class Publisher extends Stoppable {
  #native;
  #partitions;
  #room = new Turns();
  #durable = new Turns();

  constructor(inside, handle, partitions) {
    super(inside, handle);
    this.#native = handle;
    this.#partitions = partitions;
  }

  // Publishes one record and returns its offset. Never waits: if the topic is full, throws `full`.
  publish(value, options) {
    if (options === undefined && this.#room.isEmpty) {
      const offset = publish(this.#native, typeof value === 'string' ? Buffer.from(value) : value);
      return offset >= 0 ? offset : check(offset);
    }
    checkOptions(options, known.record);
    this.#checkTurn();
    return check(this.#attempt(this.#record(value, options), 0));
  }

  // The same, but waits for room, and with `acknowledge: 'durable'` for stable storage. In the order of calls.
  async publishAsync(value, options) {
    const limit = new Limit(options, known.recordAsync);
    const record = this.#record(value, options);
    return this.#wait(limit, () => this.#partitionOf(record), 1,
      (nanoseconds) => this.#attempt(record, nanoseconds),
      () => {
        record.value = copyOf(record.value);
        record.key = copyOf(record.key);
        record.headers = record.headers?.map(copyOf);
      });
  }

  // Publishes all as one batch: they become visible together. Returns the offset of the first. Values, or records:
  // { value, key, headers }.
  publishBatch(values, options) {
    checkOptions(options, known.batch);
    this.#checkTurn();
    const partition = checkPartition(options?.partition);
    return check(this.#attemptBatch(this.#batch(values), partition, 0));
  }

  async publishBatchAsync(values, options) {
    const limit = new Limit(options, known.batchAsync);
    const partition = checkPartition(options?.partition);
    const batch = this.#batch(values);
    return this.#wait(limit, () => partition, batch.count,
      (nanoseconds) => this.#attemptBatch(batch, partition, nanoseconds),
      () => {
        batch.values = batch.values?.map(copyOf);
        batch.records = batch.records?.map((part) => (Array.isArray(part) ? part.map(copyOf) : copyOf(part)));
      });
  }

  // With a function: calls it with a Buffer of so many bytes, and publishes as many of them as it returns (all, if it
  // returns nothing); what it throws aborts the claim. Returns the offset. Without: the Claim.
  claim(size, fill) {
    this.#checkTurn();
    checkSize(size);
    if (fill !== undefined && typeof fill !== 'function') throw new TypeError('fill must be a function');
    const offset = check(native.claim(this.#native, size, 0));
    try {
      if (fill === undefined) return new Claim(kInside, this.#native, offset, size);
      const data = Buffer.alloc(size);
      const written = fill(data, offset) ?? size;
      if (typeof written?.then === 'function') throw new TypeError('a claim cannot wait for a promise');
      check(native.commit(this.#native, offset, data, checkSize(written)));
      return offset;
    } catch (error) {
      native.abort(this.#native, offset);  // Unless fill() has closed the publisher.
      throw error;
    }
  }

  // Durable topics: waits until everything that this publisher has published is on stable storage.
  async flush(options) {
    const limit = new Limit(options);
    return this.#flush(limit);
  }

  requestSync() {
    check(native.requestSync(this.#native));
  }

  durableOffset(partition) {
    return check(native.durableOffset(this.#native, checkPartition(partition)));
  }

  get lastOffset() {
    const offset = native.lastOffset(this.#native);
    return offset === -errors.not_found ? null : check(offset);
  }

  get maxRecordSize() {
    return check(native.publisherMaxRecordSize(this.#native));
  }

  get partition() {
    return check(native.publisherPartition(this.#native));
  }

  // Those that wait came first.
  #checkTurn() {
    if (!this.#room.isEmpty && !this.closed) throw errorOf(errors.full);
  }

  #record(value, options) {
    if (options !== undefined && (options === null || typeof options !== 'object')) {
      throw new TypeError('options must be an object');
    }
    return {
      value: bytes(value),
      key: bytes(options?.key ?? undefined),
      headers: flatHeaders(options?.headers),
      partition: checkPartition(options?.partition),
    };
  }

  #attempt({ value, key, headers, partition }, nanoseconds) {
    return native.publishRecord(this.#native, value, key, headers, partition, nanoseconds);
  }

  #batch(values) {
    if (!Array.isArray(values)) values = [...values];
    if (values.every(isBytes)) return { values, count: values.length };
    const records = [];
    values.forEach((one, index) => {
      if (isBytes(one)) return records.push(bytes(one), undefined, undefined);
      if (one === null || typeof one !== 'object' || !isBytes(one.value)) {
        throw new TypeError(`values[${index}] must be bytes, a string, or have a value`);
      }
      if (!(one instanceof LeatRecord)) checkOptions(one, known.newRecord);  // A record that was received has more.
      return records.push(bytes(one.value), bytes(one.key ?? undefined), flatHeaders(one.headers));
    });
    return { records, count: values.length };
  }

  #attemptBatch({ values, records }, partition, nanoseconds) {
    if (records) return native.publishRecordBatch(this.#native, records, partition, nanoseconds);
    const { packed, sizes, count } = pack(values);
    return native.publishBatch(this.#native, packed, sizes, count, partition, nanoseconds);
  }

  // Where there must be room for it.
  #partitionOf({ partition, key }) {
    if (partition !== undefined || key === undefined || this.#partitions === 1) return partition;
    return native.partitionOf(key, this.#partitions);
  }

  // The offset of what `attempt(nanoseconds)` published. `keep` copies that, before others may change it.
  async #wait(limit, partition, count, attempt, keep) {
    // What else is known of an error is gone with the next call, so this looks at once.
    const publishNow = (nanoseconds) => {
      const offset = attempt(nanoseconds);
      if (offset >= 0) return { offset };
      if (offset === -errors.full || offset === -errors.timeout) return { code: -offset };
      if (offset === -errors.not_durable && native.detail() === 0) {  // It is published, but not durable yet.
        return { offset: native.lastOffset(this.#native) - (count - 1), needsFlush: true };
      }
      return check(offset);
    };
    limit.checkAborted();
    let done = this.#room.isEmpty || this.closed ? publishNow(0) : { code: errors.full };
    if (done.code === errors.full && limit.timeout > 0) {
      keep();
      done = await this.#room.take(this, limit, () => this.#waitForRoom(limit, partition, publishNow));
    }
    if (done.code !== undefined) throw errorOf(done.code);
    if (done.needsFlush) await this.#flush(limit);
    return done.offset;
  }

  async #waitForRoom(limit, partition, publishNow) {
    // A nanosecond: says whether waiting helps.
    const done = publishNow(1);
    if (done.code !== errors.timeout) return done;
    return until(this, limit, () => {
      const again = publishNow(0);
      return again.code === undefined ? again : undefined;
    }, { what: kRoom, partition: partition() });
  }

  async #flush(limit) {
    const attempt = () => {
      const code = native.flush(this.#native);
      if (code === -errors.not_durable && native.detail() === 0) return undefined;
      check(code);
      return true;
    };
    limit.checkAborted();
    const late = errors.not_durable;  // As the library says it.
    await this.#durable.take(this, limit,
      () => until(this, limit, attempt, { what: kDurable, atMost: kSyncAgain, late, stopped: late }), late, late);
  }
}

module.exports = { Publisher, Claim };
