'use strict';
// The addon, and its codes as errors. Functions of the addon return a code below zero if they fail.

const native = require('../leat.node');

const kClosed = 1000;  // As in src/addon.h.
const kIsClosed = 'it is closed';

// name -> number, of spec/errors.csv.
const errors = {};
for (let code = 0; native.errorName(code) !== 'unknown'; ++code) errors[native.errorName(code)] = code;
Object.freeze(errors);

class LeatError extends Error {
  constructor(code, message, detail = 0) {
    super(message);
    this.code = code;
    this.number = errors[code] ?? 0;
    this.detail = detail;
  }

  get name() {
    return 'LeatError';
  }
}

function errorOf(code, detail = 0) {
  if (code === kClosed) return new LeatError('invalid_argument', kIsClosed);
  return new LeatError(native.errorName(code), native.describe(code, detail), detail);
}

// The result, or throws what it stands for.
function check(result) {
  if (typeof result === 'number' && result < 0) throw errorOf(-result, native.detail());
  return result;
}

// What the promise of a task gives.
async function finish(promise) {
  if (typeof promise === 'number') check(promise);
  const [code, detail, result] = await promise;
  if (code !== 0) throw errorOf(code, detail);
  return result;
}

function checkString(value, what) {
  if (typeof value !== 'string') throw new TypeError(`${what} must be a string`);
  return value;
}

// A timeout in milliseconds.
function checkTimeout(value, otherwise = Infinity) {
  if (value === undefined) return otherwise;
  if (typeof value !== 'number' || !(value >= 0)) {
    throw new TypeError('a timeout must be a number of milliseconds, or Infinity');
  }
  return value;
}

// undefined: the one that the library chooses.
function checkPartition(value, otherwise) {
  if (value === undefined || value === null) return otherwise;
  if (!Number.isInteger(value) || value < 0 || value > 0xfffffffe) {
    throw new TypeError('a partition must be a whole number that is not negative');
  }
  return value;
}

module.exports = {
  native, errors, kIsClosed, LeatError, errorOf, check, finish, checkString, checkTimeout, checkPartition,
};
