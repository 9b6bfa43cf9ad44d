'use strict';
// A directory of topics for each file of tests, and what several of them need.

const fs = require('node:fs');
const assert = require('node:assert');

const directory = fs.mkdtempSync('/dev/shm/leat-node-');
process.env.LEAT_DIR = directory;
process.env.LEAT_DATA_DIR = `${directory}/data`;
fs.mkdirSync(process.env.LEAT_DATA_DIR);
process.on('exit', () => fs.rmSync(directory, { recursive: true, force: true }));

const leat = require('leat');

let count = 0;
// A new topic, its publisher, and a subscriber of all that it publishes.
async function pair(options, subscriberOptions) {
  const topic = await leat.Topic.create(`topic-${++count}`, options);
  return {
    topic,
    publisher: topic.publisher(),
    subscriber: topic.subscriber({ from: 'beginning', ...subscriberOptions }),
  };
}

const small = { capacityBytes: 65536, segmentBytes: 8192 };

const code = (name) => (error) => {
  assert.ok(error instanceof leat.LeatError, `${name} wanted, not ${error?.stack}`);
  assert.strictEqual(error.code, name);
  assert.strictEqual(error.number, leat.errors[name]);
  assert.ok(error.message.length > 0);
  return true;
};

const texts = (entries) => entries.map((one) => (one.isGap ? one.reason : one.value.toString()));
const sleep = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });

// Publishes until the topic is full. How many records.
function fill(publisher, value) {
  for (let n = 0; ; ++n) {
    try {
      publisher.publish(value);
    } catch (error) {
      if (error.code !== 'full') throw error;
      return n;
    }
  }
}

// Counts how often the event loop comes round while a promise is pending.
async function ticksDuring(promise) {
  let ticks = 0;
  const timer = setInterval(() => { ++ticks; }, 5);
  try {
    await promise;
  } finally {
    clearInterval(timer);
  }
  return ticks;
}

module.exports = { leat, directory, pair, small, code, texts, sleep, fill, ticksDuring };
