'use strict';
// Consumer groups, whose members share a topic's records.

const { native, errors, LeatError, errorOf, check, finish, checkPartition } = require('./native');
const { kInside, Handle } = require('./handle');
const { known, checkOptions, checkFrom } = require('./options');
const {
  kFetch, kIsAhead, kIsReady, Reader, Gap, isDelivery, isOf, tokensOf, indexOf, numbersOf,
} = require('./reader');

const kTokenSize = 64;
const kMaxName = 63;  // bytes of a member's name

class Group extends Handle {
  #native;
  #wasCreated;

  constructor(inside, handle, wasCreated) {
    super(inside, handle);
    this.#native = handle;
    this.#wasCreated = wasCreated;
  }

  get name() {
    return check(native.groupName(this.#native));
  }

  get wasCreated() {
    return this.#wasCreated;
  }

  get deadLetterTopic() {
    return check(native.deadLetterTopic(this.#native));
  }

  // Makes a member.
  async join(options) {
    checkOptions(options, known.member);
    const size = typeof options?.name === 'string' ? Buffer.byteLength(options.name) : 0;
    if (size > kMaxName) {
      throw new LeatError('invalid_argument', `name of a member has ${size} bytes, and at most ${kMaxName} are allowed`);
    }
    return new Member(kInside, await finish(native.join(this.#native, options)));
  }

  info() {
    return check(native.groupInfo(this.#native));
  }

  // Moves the group's position, in one partition or in all.
  seek(to, partition) {
    check(native.seek(this.#native, checkFrom(to), checkPartition(partition)));
  }

  // The offset of the next record to be taken.
  position(partition = 0) {
    return check(native.position(this.#native, checkPartition(partition)));
  }

  // How many records, at least, the group is done with.
  released(partition = 0) {
    return check(native.released(this.#native, checkPartition(partition)));
  }
}

class Member extends Reader {
  #native;

  constructor(inside, handle) {
    super(inside, handle, 1, true);  // What it read ahead, others would not get.
    this.#native = handle;
  }

  // One delivery, or several: those are acknowledged that this member holds. How many.
  acknowledge(what) {
    if (what instanceof Gap) throw errorOf(errors.not_in_flight);
    if (!isDelivery(what)) return this.#acknowledgeSome(what);
    this.#check(what);
    return check(native.acknowledge(this.#native, tokensOf(what), indexOf(what)));
  }

  // It, and all that this member received before.
  acknowledgeUpTo(delivery) {
    this.#check(delivery);
    return check(native.acknowledgeUpTo(this.#native, tokensOf(delivery), indexOf(delivery)));
  }

  acknowledgeAll() {
    return check(native.acknowledgeAll(this.#native));
  }

  // Makes it available to any member again, after so many milliseconds.
  requeue(delivery, options = {}) {
    const { delay = 0 } = checkOptions(options, known.requeue);
    this.#check(delivery);
    if (typeof delay !== 'number' || !(delay >= 0) || delay > 9e12) {
      throw new TypeError('a delay must be a number of milliseconds');
    }
    check(native.requeue(this.#native, tokensOf(delivery), indexOf(delivery), delay * 1e6));
  }

  get inFlight() {
    return check(native.inFlight(this.#native));
  }

  #check(delivery) {
    if (delivery instanceof Gap) throw errorOf(errors.not_in_flight);
    if (!isDelivery(delivery)) throw new TypeError('it must be a delivery');
    if (!isOf(delivery, this)) throw errorOf(errors.not_in_flight);
  }

  #acknowledgeSome(several) {
    if (typeof several?.[Symbol.iterator] !== 'function') throw new TypeError('it must be a delivery, or several');
    const all = [...several].filter((one) => !(one instanceof Gap));
    if (!all.every(isDelivery)) throw new TypeError('they must be deliveries');
    const own = all.filter((one) => isOf(one, this));
    const tokens = new Uint8Array(own.length * kTokenSize);
    own.forEach((one, index) => {
      const from = indexOf(one) * kTokenSize;
      tokens.set(tokensOf(one).subarray(from, from + kTokenSize), index * kTokenSize);
    });
    const count = check(native.acknowledgeSome(this.#native, tokens, own.length));
    if (own.length === 0 && all.length !== 0) throw errorOf(errors.not_in_flight);
    return count;
  }

  [kIsReady]() {
    return this[kIsAhead] ? 0 : native.memberReady(this.#native);
  }

  [kFetch](limit) {
    const count = native.receive(this.#native, limit, numbersOf());
    return count === -errors.timeout ? 0 : check(count);
  }
}

module.exports = { Group, Member };
