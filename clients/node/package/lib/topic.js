'use strict';
// Topics. What may take long gives a promise: Node's pool of threads does it.

const { native, errors, errorOf, check, finish, checkString, checkTimeout } = require('./native');
const { kInside, Handle, Limit } = require('./handle');
const { known, checkOptions, checkFrom } = require('./options');
const { kTopicLimits, kGroupLimits, explained, explainPartition } = require('./explain');
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
    return Topic.#make('create topic', native.topicCreate, name, options);
  }

  // Opens it if it exists, whatever its options are; otherwise creates it.
  static async openOrCreate(name, options) {
    return Topic.#make('open or create topic', native.topicOpenOrCreate, name, options);
  }

  static async #make(action, make, name, options) {
    checkString(name, 'a name');
    checkOptions(options, known.topic);
    const about = { action, name, options, limits: kTopicLimits, place: true, creates: true };
    return new Topic(kInside, await explained(finish(make(name, options)), about));
  }

  // Opens a topic. Waits until it was created.
  static async open(name, options = {}) {
    const limit = new Limit(options, known.open, 0);
    checkString(name, 'a name');
    return explained(Topic.#open(name, limit, options), { action: 'open topic', name, options, place: true });
  }

  static async #open(name, limit, { timeout, signal, ...place }) {
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
    checkString(name, 'a name');
    checkOptions(options, known.deletion);
    await explained(finish(native.topicDelete(name, options)), { action: 'delete topic', name, options, place: true });
  }

  // The names of all topics.
  static async list(options) {
    return lines(await finish(native.topicList('', checkOptions(options, known.place))));
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
  async repair(options = {}) {
    const end = performance.now() + checkTimeout(checkOptions(options, known.repair).timeout);
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
    checkOptions(options, known.publisher);
    return new Publisher(kInside, this.#join(native.publisher, options), this.partitions);
  }

  subscriber(options) {
    checkOptions(options, known.subscriber);
    checkFrom(options?.from);
    return new Subscriber(kInside, this.#join(native.subscriber, options));
  }

  #join(make, options) {
    try {
      return check(make(this.#native, options));
    } catch (error) {
      throw this.closed ? error : explainPartition(error, options?.partition, this.partitions);
    }
  }

  // Opens the consumer group of that name, or creates it.
  async group(name, options) {
    checkString(name, 'a name');
    checkOptions(options, known.group);
    checkFrom(options?.from);
    const about = { action: 'open group', name, options, limits: kGroupLimits };
    const [handle, wasCreated] = await explained(finish(native.group(this.#native, name, options)), about);
    return new Group(kInside, handle, wasCreated !== 0);
  }

  async findGroup(name) {
    checkString(name, 'a name');
    const [handle] = await explained(finish(native.findGroup(this.#native, name)), { action: 'find group', name });
    return new Group(kInside, handle, false);
  }

  // With `force` also while it has members.
  async deleteGroup(name, options) {
    checkString(name, 'a name');
    checkOptions(options, known.groupDeletion);
    await explained(finish(native.deleteGroup(this.#native, name, options)), { action: 'delete group', name });
  }

  groupNames() {
    return lines(check(native.topicGroupNames(this.#native)));
  }
}

module.exports = { Topic };
