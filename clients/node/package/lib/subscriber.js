'use strict';
// Subscribers: each reads all records of a topic, or of one partition.

const { setMaxListeners } = require('node:events');

const { native, LeatError, check, checkPartition } = require('./native');
const { Limit } = require('./handle');
const { kFetch, kTake, kAhead, kIsAhead, kLimit, kIsReady, Reader, checkLimit, numbersOf } = require('./reader');

const kMaxWaitAny = 64;

class Subscriber extends Reader {
  #native;

  constructor(inside, handle) {
    super(inside, handle, kLimit, false);
    this.#native = handle;
  }

  // Available entries, at most `limit`; an empty array if there are none. Never waits.
  poll(limit = kLimit) {
    return this[kTake](checkLimit(limit));
  }

  // The offset of the next entry in a partition.
  offset(partition = 0) {
    const next = check(native.offset(this.#native, checkPartition(partition)));
    return this[kAhead].find((entry) => entry.partition === partition)?.offset ?? next;
  }

  get isLossy() {
    return check(native.isLossy(this.#native)) !== 0;
  }

  [kIsReady]() {
    return this[kIsAhead] ? 0 : native.subscriberReady(this.#native);
  }

  [kFetch](limit) {
    return check(native.poll(this.#native, limit, numbersOf()));
  }
}

// Waits until one of these subscribers may have something to do; its index.
async function waitAny(subscribers, options) {
  const limit = new Limit(options);
  const all = [...subscribers];
  if (!all.every((one) => one instanceof Subscriber)) throw new TypeError('waitAny() waits for subscribers');
  if (all.length === 0 || all.length > kMaxWaitAny) {
    throw new LeatError('invalid_argument', `waitAny() got ${all.length} subscribers, and waits for 1 to ${kMaxWaitAny}`);
  }
  const cancel = new AbortController();
  setMaxListeners(0, cancel.signal);  // One for each subscriber.
  const pass = () => cancel.abort();
  limit.signal?.addEventListener('abort', pass);
  try {
    limit.checkAborted();
    // Before the time of another is found to be over.
    const ready = all.findIndex((one) => one[kIsReady]() === 0);
    if (ready !== -1) return ready;
    // The first that ends, ends the others.
    const { timeout } = limit;
    return await Promise.race(all.map(async (one, index) => {
      await one.wait({ timeout, signal: cancel.signal });
      return index;
    }));
  } catch (error) {
    limit.checkAborted();
    throw error;
  } finally {
    cancel.abort();
    limit.signal?.removeEventListener('abort', pass);
  }
}

module.exports = { Subscriber, waitAny };
