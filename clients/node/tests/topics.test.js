'use strict';
// If this failed, a program could not find, make or describe topics, or would not know an error by its name.

const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { leat, directory, pair, code, sleep, ticksDuring } = require('./helper');

const root = path.join(__dirname, '..', '..', '..');

test('the codes are those of spec/errors.csv, also for TypeScript', () => {
  const rows = fs.readFileSync(path.join(root, 'spec', 'errors.csv'), 'utf8').trim().split('\n').slice(1)
    .map((row) => row.split(',').slice(0, 2));
  assert.deepStrictEqual(Object.entries(leat.errors).map(([name, number]) => [`${number}`, name]), rows);
  const types = fs.readFileSync(path.join(__dirname, '..', 'package', 'index.d.ts'), 'utf8');
  const union = types.match(/export type ErrorCode =([^;]*);/)[1].match(/\w+/g);
  assert.deepStrictEqual(union, rows.map(([, name]) => name).slice(1));
});

test('the types name all that there is, and nothing else', async () => {
  const types = fs.readFileSync(path.join(__dirname, '..', 'package', 'index.d.ts'), 'utf8');
  const bodies = new Map([...types.matchAll(/^(?:export|declare) class (\w+)[^{]*{\n(.*?)^}/gms)].map(([, name, body]) => [name, body]));
  const parents = { Topic: ['Handle'], Group: ['Handle'], Publisher: ['Stoppable', 'Handle'],
    Subscriber: ['Reader', 'Stoppable', 'Handle'], Member: ['Reader', 'Stoppable', 'Handle'] };
  for (const name of ['Topic', 'Publisher', 'Claim', 'Subscriber', 'Group', 'Member']) {
    const wanted = new Set();
    for (const one of [name, ...parents[name] ?? []]) {
      for (const [, member] of bodies.get(one).matchAll(/^ {2}(?:static |readonly )*(\w+)\??[(:]/gm)) wanted.add(member);
    }
    const found = new Set(Object.getOwnPropertyNames(leat[name]).filter((one) => typeof leat[name][one] === 'function'));
    for (let type = leat[name].prototype; type !== Object.prototype; type = Object.getPrototypeOf(type)) {
      Object.getOwnPropertyNames(type).forEach((one) => found.add(one));
    }
    wanted.delete('constructor');
    found.delete('constructor');
    assert.deepStrictEqual([...found].sort(), [...wanted].sort(), name);
  }
  for (const name of Object.keys(leat)) assert.match(types, new RegExp(`export (class|const|function) ${name}\\b`));
});

test('topics are made, listed, described and deleted', async () => {
  const topic = await leat.Topic.create('news', { policy: 'grow', partitions: 2, capacityBytes: 1 << 20, mode: 0o600 });
  assert.deepStrictEqual([topic.name, topic.partitions, topic.closed], ['news', 2, false]);
  assert.ok(topic.maxRecordSize > 1000);
  assert.strictEqual((await topic.info()).partitions.length, 2);
  topic.setMaxCapacity(2 << 20);
  assert.strictEqual(typeof await topic.shrink(), 'number');
  await assert.rejects(topic.repair(), code('needs_durable'));
  await assert.rejects(leat.Topic.create('news'), code('exists'));
  const again = await leat.Topic.openOrCreate('news');
  assert.strictEqual(again.partitions, 2);
  assert.ok((await leat.Topic.list()).includes('news'));
  const publisher = topic.publisher({ partition: 1 });
  assert.strictEqual(publisher.partition, 1);
  assert.strictEqual(publisher.maxRecordSize, topic.maxRecordSize);
  await assert.rejects(leat.Topic.delete('news'), code('busy'));
  await leat.Topic.delete('news', { force: true });
  assert.throws(() => publisher.publish('x'), code('deleted'));
  await assert.rejects(leat.Topic.open('news'), code('not_found'));
  await assert.rejects(leat.Topic.create('no/such/name'), code('invalid_argument'));
  await assert.rejects(leat.Topic.create('lightq://there'), code('unsupported'));
  const elsewhere = `${directory}/elsewhere`;
  await leat.Topic.create('here', { directory: elsewhere });
  assert.deepStrictEqual(await leat.Topic.list({ directory: elsewhere }), ['here']);
  await leat.Topic.open('here', { directory: elsewhere });
  await leat.Topic.delete('here', { directory: elsewhere });
});

test('errors say what is known', async () => {
  const { publisher } = await pair();
  assert.throws(() => publisher.publish(Buffer.alloc(16 << 20)), (error) => {
    code('too_large')(error);
    assert.ok(error.detail > 1000);
    assert.strictEqual(error.name, 'LeatError');
    assert.match(error.message, new RegExp(`${error.detail}`));
    assert.match(`${error.stack}`, /LeatError/);
    return true;
  });
});

test('open waits for the topic without blocking, and can be aborted', async () => {
  const opening = leat.Topic.open('later', { timeout: Infinity });
  assert.ok(await ticksDuring(sleep(300)) > 3);
  await leat.Topic.create('later');
  assert.strictEqual((await opening).name, 'later');
  await assert.rejects(leat.Topic.open('never', { timeout: 30 }), code('not_found'));
  const abort = new AbortController();
  const aborted = leat.Topic.open('never', { timeout: Infinity, signal: abort.signal });
  await sleep(10);
  abort.abort();
  await assert.rejects(aborted, { name: 'AbortError' });
});

test('wrong options are refused by name', async () => {
  await assert.rejects(leat.Topic.create('x', { polizy: 'block' }), /polizy/);
  await assert.rejects(leat.Topic.create('x', { policy: 'bloc' }), /'block' 'fail' 'overwrite' 'grow'/);
  await assert.rejects(leat.Topic.create('x', { capacityBytes: '1' }), TypeError);
  await assert.rejects(leat.Topic.create('x', { capacityBytes: -1 }), TypeError);
  await assert.rejects(leat.Topic.create('x', { capacityBytes: 1.5 }), TypeError);
  await assert.rejects(leat.Topic.create('x', { partitions: 2 ** 32 }), TypeError);
  await assert.rejects(leat.Topic.create('x', { timestamps: 1 }), TypeError);
  await assert.rejects(leat.Topic.create('x', 5), TypeError);
  await assert.rejects(leat.Topic.create(5), TypeError);
  await assert.rejects(leat.Topic.create('x', { get policy() { throw new RangeError('mine'); } }), RangeError);
  const { topic } = await pair();
  assert.throws(() => topic.subscriber({ from: 'start' }), TypeError);
  assert.throws(() => topic.subscriber({ from: {} }), TypeError);
  assert.throws(() => topic.subscriber({ from: { offset: -1 } }), TypeError);
  assert.throws(() => topic.publisher({ partition: 7 }), code('invalid_argument'));
  await assert.rejects(topic.group('a b'), code('invalid_argument'));
});

test('subscribers begin where they are told to', async () => {
  const { topic, publisher } = await pair({ timestamps: true });
  const before = new Date(Date.now() - 1000);
  publisher.publishBatch(['a', 'b', 'c']);
  const first = (from) => topic.subscriber({ from }).poll()[0]?.offset;
  assert.deepStrictEqual(
    [{ offset: 1 }, { last: 1 }, { time: before }, { time: before.getTime() }, 'beginning', 'end'].map(first),
    [1, 2, 0, 0, 0, undefined]);
});
