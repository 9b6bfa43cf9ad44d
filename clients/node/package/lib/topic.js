'use strict';
// Topics. What may take long gives a promise: Node's pool of threads does it.

const { native, errors, errorOf, check, finish, checkString, checkTimeout } = require('./native');
const { kInside, Handle, Limit } = require('./handle');
const { Publisher } = require('./publisher');
const { Subscriber } = require('./subscriber');
const { Group } = require('./group');

const kLongestPause = 250;  // ms between looks for a topic that is not there yet; each costs 0.5 ms of CPU
const kSlice = 50;         // ms

function lines(text) {
  return text.split('\n').filter((line) => line !== '');
}

function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    signal?.addEventListener('abort', end);
  });
}

class Topic extends Handle {
  #native;

  constructor(inside, handle) {
    super(inside, handle);
    this.#native = handle;
  }

  // Creates a topic and opens it.
  static async create(name, options) {
    return new Topic(kInside, await finish(native.topicCreate(checkString(name, 'a name'), options)));
  }

  // Opens it if it exists, whatever its options are; otherwise creates it.
  static async openOrCreate(name, options) {
    return new Topic(kInside, await finish(native.topicOpenOrCreate(checkString(name, 'a name'), options)));
  }

  // Opens a topic. Waits until it was created.
  static async open(name, { timeout, signal, ...place } = {}) {
    const limit = new Limit({ timeout, signal }, 0);
    checkString(name, 'a name');
    limit.checkAborted();
    for (let milliseconds = 1; ; milliseconds = Math.min(2 * milliseconds, kLongestPause)) {
      try {
        const topic = new Topic(kInside, await finish(native.topicOpen(name, place)));
        if (signal?.aborted) topic.close();
        limit.checkAborted();
        return topic;
      } catch (error) {
        if (error?.code !== 'not_found' || limit.left <= 0) throw error;
      }
      await pause(Math.min(milliseconds, limit.left), signal);
      limit.checkAborted();
    }
  }

  // Deletes a topic and frees its name.
  static async delete(name, options) {
    await finish(native.topicDelete(checkString(name, 'a name'), options));
  }

  // The names of all topics.
  static async list(options) {
    return lines(await finish(native.topicList('', options)));
  }

  get name() {
    return check(native.topicName(this.#native));
  }

  get maxRecordSize() {
    return check(native.topicMaxRecordSize(this.#native));
  }

  get partitions() {
    return check(native.topicPartitions(this.#native));
  }

  // What `leat topic info --json` prints, as an object.
  async info() {
    return JSON.parse(await finish(native.topicJson(this.#native)));
  }

  // Policy grow: sets how far each partition may grow from now on.
  setMaxCapacity(bytes) {
    if (!Number.isSafeInteger(bytes) || bytes < 0) throw new TypeError('bytes must be a whole number that is not negative');
    check(native.topicSetMaxCapacity(this.#native, bytes));
  }

  // Policy grow: frees idle memory, and returns how many bytes.
  async shrink() {
    return finish(native.topicShrink(this.#native));
  }

  // A durable topic that is read-only: makes it writable again.
  async repair({ timeout } = {}) {
    const end = performance.now() + checkTimeout(timeout);
    for (;;) {
      const left = end - performance.now();
      try {
        await finish(native.topicRepair(this.#native, Math.max(0, Math.min(left, kSlice))));
        return;
      } catch (error) {
        if (error.code !== 'not_durable' || error.detail !== 0 || left <= kSlice) throw error;
        if (this.closed) throw errorOf(errors.stopped);
      }
    }
  }

  publisher(options) {
    const handle = check(native.publisher(this.#native, options));
    return new Publisher(kInside, handle, this.partitions);
  }

  subscriber(options) {
    return new Subscriber(kInside, check(native.subscriber(this.#native, options)));
  }

  // Opens the consumer group of that name, or creates it.
  async group(name, options) {
    const [handle, wasCreated] = await finish(native.group(this.#native, checkString(name, 'a name'), options));
    return new Group(kInside, handle, wasCreated !== 0);
  }

  async findGroup(name) {
    const [handle] = await finish(native.findGroup(this.#native, checkString(name, 'a name')));
    return new Group(kInside, handle, false);
  }

  // With `force` also while it has members.
  async deleteGroup(name, options) {
    await finish(native.deleteGroup(this.#native, checkString(name, 'a name'), options));
  }

  groupNames() {
    return lines(check(native.topicGroupNames(this.#native)));
  }
}

module.exports = { Topic };
