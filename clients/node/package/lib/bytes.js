'use strict';
// Values, keys and headers on their way into the addon.

const { errors, errorOf } = require('./native');

// Strings are UTF-8. What is neither string nor bytes the addon refuses.
function bytes(value) {
  return typeof value === 'string' ? Buffer.from(value) : value;
}

function isBytes(value) {
  return typeof value === 'string' || ArrayBuffer.isView(value);
}

// [name, value, name, value, …], from pairs, a Map or an object.
function flatHeaders(headers) {
  if (headers === undefined || headers === null) return undefined;
  if (typeof headers !== 'object') throw new TypeError('headers must be pairs, a Map or an object');
  const pairs = typeof headers[Symbol.iterator] === 'function' ? headers : Object.entries(headers);
  const flat = [];
  for (const pair of pairs) {
    if (!Array.isArray(pair) || pair.length !== 2 || !isBytes(pair[0]) || !isBytes(pair[1])) {
      throw new TypeError('a header must be a pair of a name and a value, both bytes or strings');
    }
    flat.push(bytes(pair[0]), bytes(pair[1]));
  }
  return flat;
}

// Bytes that stay as they are, whatever the caller does to its own.
function copyOf(value) {
  if (typeof value === 'string') return Buffer.from(value);
  if (!ArrayBuffer.isView(value)) return value;
  return Buffer.from(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
}

// Values packed one behind the other: one call moves them. Reused by the next batch.
let packed = Buffer.allocUnsafeSlow(64 * 1024);
let sizes = new Uint32Array(1024);

function sizeOf(value, index) {
  if (ArrayBuffer.isView(value)) return value.byteLength;
  if (typeof value === 'string') return Buffer.byteLength(value);
  throw new TypeError(`values[${index}] must be a Buffer, a typed array, a DataView, a string, or have a value`);
}

function put(value, at) {
  if (typeof value === 'string') {
    packed.write(value, at);
  } else if (value instanceof Uint8Array) {
    packed.set(value, at);
  } else {
    packed.set(new Uint8Array(value.buffer, value.byteOffset, value.byteLength), at);
  }
}

// { packed, sizes, count }, until the next call.
function pack(values) {
  const count = values.length;
  if (count > sizes.length) sizes = new Uint32Array(2 * count);
  let total = 0;
  for (let i = 0; i < count; ++i) {
    const value = values[i];
    const size = value instanceof Uint8Array ? value.length : sizeOf(value, i);
    sizes[i] = size;
    total += size;
  }
  if (total > 0xffffffff) throw errorOf(errors.too_large);
  const large = packed.length;
  if (total > large) packed = Buffer.allocUnsafeSlow(total);
  for (let i = 0, at = 0; i < count; at += sizes[i++]) put(values[i], at);
  const result = { packed, sizes, count };
  if (total > 1024 * 1024) packed = Buffer.allocUnsafeSlow(large);  // Such a one is not kept.
  return result;
}

module.exports = { bytes, isBytes, flatHeaders, copyOf, pack };
