#!/usr/bin/env node
'use strict';
// What a record costs in Node, for `leat bench clients`: node TOPIC SIZE RECORDS. Prints nanoseconds as a line of JSON.
//
// The topic holds all records. Each part runs twice, and the second time counts.

const leat = require('leat');

const BATCH = 64;

let seen = 0; // So that the compiler cannot leave out looking at the values.

// Nanoseconds for each record of the second time.
function nsEach(records, begin) {
  return Number(process.hrtime.bigint() - begin) / records;
}

function timePublishing(topic, records, work) {
  const publisher = topic.publisher();
  work(publisher);
  const begin = process.hrtime.bigint();
  work(publisher);
  const ns = nsEach(records, begin);
  publisher.close();
  return ns;
}

function timeReading(topic, records, read) {
  let ns = 0;
  for (let run = 0; run < 2; ++run) {
    const subscriber = topic.subscriber({ from: { last: records } });
    const begin = process.hrtime.bigint();
    for (let left = records; left > 0;) left -= read(subscriber);
    ns = nsEach(records, begin);
    subscriber.close();
  }
  return ns;
}

function readBatch(subscriber) {
  const batch = subscriber.poll(BATCH);
  for (const { value } of batch) seen += value[value.length - 1];
  return batch.length;
}

async function main([name, size, records]) {
  const topic = await leat.Topic.open(name);
  const value = Buffer.alloc(size);
  const values = new Array(BATCH).fill(value);
  const figures = {
    runtime: `Node ${process.versions.node}`,
    publish_ns: timePublishing(topic, records, (publisher) => {
      for (let i = 0; i < records; ++i) publisher.publish(value);
    }),
    batch_ns: timePublishing(topic, records, (publisher) => {
      for (let i = 0; i < records; i += BATCH) publisher.publishBatch(values);
    }),
    read_ns: timeReading(topic, records, readBatch),
    view_ns: null,
  };
  topic.close();
  console.log(JSON.stringify(figures));
}

if (process.argv.length !== 5) {
  console.error('usage: node TOPIC SIZE RECORDS');
  process.exit(2);
}
main([process.argv[2], Number(process.argv[3]), Number(process.argv[4])]).catch((error) => {
  console.error(error.message);
  process.exit(1);
});
