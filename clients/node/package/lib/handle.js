'use strict';
// What all handles have in common: closing, and for those that wait, stopping and waiting.

const { native, errorOf, errors, check, checkTimeout } = require('./native');
const { known, checkOptions } = require('./options');

const kInside = Symbol('inside');  // Only the library makes handles.
const kNative = Symbol('native');
const kStops = Symbol('stops');
const kLongest = 2 ** 31 - 1;      // ms that a timer can wait

class Handle {
  #native;
  #isClosed = false;

  constructor(inside, handle) {
    if (inside !== kInside) throw new TypeError('handles are made by topics and groups');
    this.#native = handle;
  }

  get [kNative]() {
    return this.#native;
  }

  get closed() {
    return this.#isClosed;
  }

  close() {
    this.#isClosed = true;
    native.close(this.#native);
  }
}
// `using`, where the language has it.
if (Symbol.dispose) Handle.prototype[Symbol.dispose] = function dispose() { this.close(); };

class Stoppable extends Handle {
  #isStopped = false;
  #stops = 0;
  #sleepers = new Set();
  #busy = new Set();

  get stopped() {
    return this.#isStopped;
  }

  // How often it was stopped: a wait that sees another number than at its beginning ends, also if resume() came since.
  get [kStops]() {
    return this.#stops;
  }

  stop() {
    check(native.stop(this[kNative], true));
    this.#isStopped = true;
    ++this.#stops;
    this.#wakeAll();
  }

  resume() {
    check(native.stop(this[kNative], false));
    this.#isStopped = false;
  }

  close() {
    super.close();
    this.#wakeAll();
  }

  #wakeAll() {
    for (const wake of [...this.#sleepers]) wake();
  }

  // Sleeps until what `begin(wake)` began calls wake, for at most so many milliseconds, or until it is stopped,
  // closed or aborted. `end` ends what was begun.
  static sleep(handle, milliseconds, signal, begin, end) {
    return new Promise((resolve, reject) => {
      let timer;
      const wake = () => {
        handle.#sleepers.delete(wake);
        clearTimeout(timer);
        signal?.removeEventListener('abort', wake);
        end?.();
        resolve();
      };
      handle.#sleepers.add(wake);
      if (milliseconds !== Infinity) timer = setTimeout(wake, Math.min(Math.ceil(milliseconds), kLongest));
      signal?.addEventListener('abort', wake);
      try {
        begin?.(wake);
      } catch (error) {
        reject(error);
        wake();
      }
    });
  }

  static begin(handle, what) {
    if (handle.#busy.has(what)) throw errorOf(errors.busy);
    handle.#busy.add(what);
  }

  static end(handle, what) {
    handle.#busy.delete(what);
  }
}

// When a wait must end, in whatever way it is told to.
class Limit {
  #stops;

  // `names`: the options that the call has.
  constructor(options = {}, names = known.wait, otherwise = Infinity) {
    if (options === null || typeof options !== 'object') throw new TypeError('options must be an object');
    checkOptions(options, names);
    const { signal } = options;
    if (signal !== undefined
        && (typeof signal?.addEventListener !== 'function' || typeof signal.removeEventListener !== 'function')) {
      throw new TypeError('signal must be an AbortSignal');
    }
    this.timeout = checkTimeout(options.timeout, otherwise);
    this.signal = signal;
    this.end = this.timeout === Infinity ? Infinity : performance.now() + this.timeout;
  }

  get left() {
    return this.end === Infinity ? Infinity : this.end - performance.now();
  }

  checkAborted() {
    if (this.signal?.aborted) throw this.signal.reason;
  }

  // Throws why a wait of this handle cannot go on.
  check(handle, late = errors.timeout, stopped = errors.stopped) {
    if (handle.closed) throw errorOf(errors.stopped);
    this.checkAborted();
    this.#stops ??= handle[kStops];
    if ((handle.stopped || handle[kStops] !== this.#stops) && this.timeout > 0) throw errorOf(stopped);
    if (this.left <= 0) throw errorOf(late);
  }
}

// The descriptors that a handle has, as in src/addon.h.
const kData = 0;
const kRoom = 0;
const kDurable = 1;

// Calls `attempt` until it gives something else than undefined, whenever a descriptor is readable. Nothing is
// taken in between, so a wait that is aborted loses nothing.
//
// `atMost`: and after so many milliseconds.
async function until(handle, limit, attempt, options = {}) {
  const { what = kData, partition, atMost = Infinity, late, stopped } = options;
  let found = attempt();
  if (found !== undefined) return found;
  limit.check(handle, late, stopped);
  Stoppable.begin(handle, what);
  try {
    for (;;) {
      check(native.prepare(handle[kNative], what, partition));
      found = attempt();
      if (found !== undefined) return found;
      limit.check(handle, late, stopped);
      await Stoppable.sleep(handle, Math.min(limit.left, atMost), limit.signal,
        (wake) => check(native.arm(handle[kNative], what, wake)),
        () => native.disarm(handle[kNative], what));
      if (handle.closed) throw errorOf(errors.stopped);
      limit.checkAborted();
      found = attempt();
      if (found !== undefined) return found;
    }
  } finally {
    Stoppable.end(handle, what);
  }
}

// Those that wait for the same thing, one after the other.
class Turns {
  #waiting = [];

  get isEmpty() {
    return this.#waiting.length === 0;
  }

  async take(handle, limit, work, late, stopped) {
    const turn = { wake: undefined };
    this.#waiting.push(turn);
    try {
      while (this.#waiting[0] !== turn) {
        limit.check(handle, late, stopped);
        await Stoppable.sleep(handle, limit.left, limit.signal, (wake) => { turn.wake = wake; });
      }
      limit.checkAborted();
      return await work();
    } finally {
      this.#waiting.splice(this.#waiting.indexOf(turn), 1);
      this.#waiting[0]?.wake?.();
    }
  }
}

module.exports = { kInside, kNative, kStops, kData, kRoom, kDurable, Handle, Stoppable, Limit, Turns, until };
