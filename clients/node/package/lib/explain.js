'use strict';
// Errors that name the thing and the cause, which a code alone cannot.

const { existsSync } = require('node:fs');

const { kIsClosed, LeatError } = require('./native');

function directoryOf(place) {
  return place?.directory || process.env.LEAT_DIR || `/dev/shm/leat-${process.geteuid()}`;
}

function isValid(name) {
  return /^[A-Za-z0-9._-]{1,200}$/.test(name) && name !== '.' && name !== '..';
}

// Enough of a name to recognize it.
function shortened(name) {
  return name.length <= 200 ? name : `${name.slice(0, 200)}…`;
}

// [option, least, most]
const kTopicLimits = [['partitions', 1, 1024], ['participants', 1, 4096], ['capacityBytes', 0, 2 ** 40],
  ['segmentBytes', 0, 2 ** 30]];
const kGroupLimits = [['members', 1, 255], ['inFlight', 1, 65536], ['maxDeliveries', 0, 65534]];

function outOfRange(options, limits) {
  for (const [option, least, most] of limits) {
    const given = options?.[option];
    if (given < least || given > most) return `${option} is ${given}, and must be ${least} to ${most}`;
  }
  return undefined;
}

// The directory that is not there: of a durable topic, one of two.
function missing(options) {
  const data = options?.dataDirectory || process.env.LEAT_DATA_DIR;
  const isData = existsSync(directoryOf(options)) && data && !existsSync(data);
  const [path, names] = isData ? [data, 'LEAT_DATA_DIR or the option dataDirectory']
    : [directoryOf(options), 'LEAT_DIR or the option directory'];
  return `the directory ${path} does not exist and cannot be made; ${names} names another`;
}

function reason(error, about) {
  const { name, options, limits = [], place, creates } = about;
  if (error.code === 'unsupported' && name.includes('://')) {
    return 'that is the address of a broker, and this client opens topics of this machine only';
  }
  if (error.code === 'invalid_argument' && !isValid(name)) {
    return 'a name is 1 to 200 letters, digits, dots, underscores and dashes';
  }
  if (error.code === 'invalid_argument' && (outOfRange(options, limits) || creates)) {
    return outOfRange(options, limits) ?? 'its options contradict each other, or one is out of its range';
  }
  if (error.code === 'not_found' && creates) return missing(options);
  if (error.code === 'not_found' && place) return `there is no such topic in ${directoryOf(options)}`;
  return place ? `${error.message}, in ${directoryOf(options)}` : error.message;
}

// Rethrows an error of the library as a sentence about what was to be done: { action, name, options, limits, place, creates }.
async function explained(promise, about) {
  try {
    return await promise;
  } catch (error) {
    if (!(error instanceof LeatError) || error.message === kIsClosed) throw error;
    throw new LeatError(error.code, `cannot ${about.action} '${shortened(about.name)}': ${reason(error, about)}`, error.detail);
  }
}

// The error of making a publisher or subscriber for a partition: the topic may have fewer.
function explainPartition(error, partition, count) {
  if (error.code !== 'invalid_argument' || typeof partition !== 'number' || partition < count) return error;
  return new LeatError(error.code, `partition ${partition} does not exist: the topic has ${count}`, error.detail);
}

module.exports = { kTopicLimits, kGroupLimits, explained, explainPartition };
