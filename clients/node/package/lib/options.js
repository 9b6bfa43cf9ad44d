'use strict';
// Which options each call has. The addon checks their values.

const kPlace = ['directory', 'dataDirectory'];
const kWait = ['timeout', 'signal'];
const kRecord = ['key', 'headers', 'partition'];

const known = {
  topic: ['policy', 'capacityBytes', 'segmentBytes', 'maxCapacityBytes', 'growBelowBytes', 'partitions', 'participants',
    'retainAll', 'singleWriter', 'timestamps', 'deleteWhenUnused', 'revokeAfter', 'evictAfter', 'mode', 'durable',
    'syncInterval', 'fileBytes', 'retentionBytes', 'retention', 'fileGroup', ...kPlace],
  place: kPlace,
  open: [...kPlace, ...kWait],
  deletion: [...kPlace, 'force'],
  repair: ['timeout'],
  publisher: ['partition', 'exclusive', 'acknowledge'],
  subscriber: ['from', 'partition', 'gating', 'inPlace', 'read', 'patience'],
  group: ['from', 'mode', 'byKey', 'members', 'inFlight', 'maxDeliveries', 'onExpired', 'lease'],
  groupDeletion: ['force'],
  member: ['name', 'patience'],
  from: ['offset', 'last', 'time'],
  wait: kWait,
  record: kRecord,
  recordAsync: [...kRecord, ...kWait],
  batch: ['partition'],
  batchAsync: ['partition', ...kWait],
  newRecord: ['value', 'key', 'headers'],
  receiveBatch: ['limit', ...kWait],
  entries: ['signal'],
  requeue: ['delay'],
};

// How many letters must be added, removed, replaced, or exchanged with the next one.
function distance(from, to) {
  const rows = [Array.from({ length: to.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= from.length; ++i) {
    const row = [i];
    for (let j = 1; j <= to.length; ++j) {
      row[j] = Math.min(rows[i - 1][j] + 1, row[j - 1] + 1, rows[i - 1][j - 1] + (from[i - 1] === to[j - 1] ? 0 : 1));
      if (i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]) {
        row[j] = Math.min(row[j], rows[i - 2][j - 2] + 1);
      }
    }
    rows.push(row);
  }
  return rows[from.length][to.length];
}

function unknownOption(name, names) {
  const shown = name.slice(0, 40);
  const far = (candidate) => distance(shown.toLowerCase(), candidate.toLowerCase());
  const nearest = names.reduce((best, one) => (far(one) < far(best) ? one : best));
  const hint = far(nearest) <= Math.max(1, Math.floor(shown.length / 3)) ? ` (did you mean '${nearest}'?)` : '';
  const error = new TypeError(`there is no option '${shown}'${hint}: the options are ${names.join(', ')}`);
  error.code = 'ERR_INVALID_ARG_VALUE';
  return error;
}

// Refuses what is no option of the call. Returns the options.
function checkOptions(options, names) {
  if (options === undefined || options === null) return options;
  if (typeof options !== 'object') throw new TypeError('options must be an object');
  for (const name in options) {
    if (!names.includes(name)) throw unknownOption(name, names);
  }
  return options;
}

// Where to begin: a name, or an object with one of three properties.
function checkFrom(from) {
  if (typeof from !== 'object' || from === null) return from;
  checkOptions(from, known.from);
  if (known.from.filter((name) => from[name] !== undefined && from[name] !== null).length > 1) {
    throw new TypeError('from must have only one of offset, last and time');
  }
  return from;
}

module.exports = { known, checkOptions, checkFrom };
