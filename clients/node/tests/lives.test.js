'use strict';
// If this failed, a process that runs for long would lose memory, descriptors or threads, or its threads would
// disturb each other.

require('node:v8').setFlagsFromString('--expose-gc');
const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { once } = require('node:events');
const { spawnSync } = require('node:child_process');
const { Worker } = require('node:worker_threads');
const { leat, pair, code, sleep } = require('./helper');
const { native } = require(path.join(path.dirname(require.resolve('leat')), 'lib', 'native'));

const gc = require('node:vm').runInNewContext('gc');
const descriptors = () => fs.readdirSync('/proc/self/fd').length;
const threads = () => fs.readdirSync('/proc/self/task').length;
const participants = async (topic) => (await topic.info()).participants.length;

test('10,000 open and close: nothing grows', async () => {
  const { topic, publisher } = await pair();
  const round = async () => {
    const handles = [topic.publisher(), topic.subscriber()];
    handles[0].publish('x');
    await handles[1].receive();
    const waiting = handles[1].receive();
    handles.forEach((one) => one.close());
    await assert.rejects(waiting, code('stopped'));
  };
  for (let i = 0; i < 500; ++i) await round();
  gc();
  const before = [descriptors(), threads(), process.memoryUsage().rss];
  for (let i = 0; i < 10000; ++i) await round();
  gc();
  assert.ok(descriptors() <= before[0] + 2, `${descriptors()} descriptors, not ${before[0]}`);
  assert.ok(threads() <= before[1] + 2, `${threads()} threads, not ${before[1]}`);
  const grown = (process.memoryUsage().rss - before[2]) / (1 << 20);
  assert.ok(grown < 40, `${grown} MiB more`);
  assert.ok(await participants(topic) <= 2);
  publisher.close();
});

test('topics, groups and members too', async () => {
  const { topic } = await pair();
  const round = async () => {
    const again = await leat.Topic.open(topic.name);
    const group = await again.group('g');
    const member = await group.join();
    for (const one of [again, group, member]) one.close();
  };
  for (let i = 0; i < 50; ++i) await round();
  const before = [descriptors(), threads()];
  for (let i = 0; i < 1000; ++i) await round();
  assert.ok(descriptors() <= before[0] + 2);
  assert.ok(threads() <= before[1] + 2);
});

test('dropped handles are closed by the collector', async () => {
  const { topic } = await pair();
  const had = await participants(topic);
  (() => { for (let i = 0; i < 50; ++i) topic.publisher().publish(topic.subscriber() && 'x'); })();
  assert.ok(await participants(topic) > had);
  for (let i = 0; i < 200 && await participants(topic) > had; ++i) {
    gc();
    await sleep(10);
  }
  assert.ok(await participants(topic) <= had);
});

test('a dropped iterator that waits keeps its subscriber', async () => {
  const { topic, publisher } = await pair();
  const waiting = (() => topic.subscriber().receive())();
  for (let i = 0; i < 5; ++i) {
    gc();
    await sleep(5);
  }
  publisher.publish('x');
  assert.strictEqual((await waiting).value.toString(), 'x');
});

test('an idle wait costs no time', async () => {
  const { topic, publisher, subscriber } = await pair();
  const member = await (await topic.group('g')).join();
  const receiving = [subscriber.receive(), member.receive()];
  await sleep(10);
  publisher.publish('x');  // Their descriptors stay readable: they find it without looking for more.
  await Promise.all(receiving);
  const idle = topic.subscriber();
  const waiting = [subscriber, member].map((one) => one.wait({ timeout: 1500 })).concat(idle.receive({ timeout: 1500 }));
  const settled = Promise.allSettled(waiting);
  await sleep(300);
  let rounds = 0;
  const { arm } = native;
  native.arm = (...all) => { ++rounds; return arm(...all); };
  const before = process.cpuUsage();
  await sleep(1000);
  const { user, system } = process.cpuUsage(before);
  native.arm = arm;
  assert.ok((await settled).every(({ reason }) => reason?.code === 'timeout'));
  assert.ok(rounds <= 3, `looked ${rounds} times in a second`);
  assert.ok(user + system < 50000, `${user + system} us in a second`);
});

const inWorker = `
  const { workerData, parentPort } = require('node:worker_threads');
  const leat = require('leat');
  (async () => {
    const topic = await leat.Topic.open(workerData.name);
    const publisher = topic.publisher();
    const subscriber = topic.subscriber({ from: 'beginning' });
    if (workerData.waits) {
      for (let i = 0; i < 100; ++i) subscriber.poll(1000);
      subscriber.receive();
      topic.subscriber().receive();
      leat.Topic.open('never', { timeout: Infinity });
      parentPort.postMessage('waits');
      setInterval(() => {}, 1000);
      return;
    }
    for (let i = 0; i < workerData.count; ++i) await publisher.publishAsync(workerData.who + ':' + i);
    let read = 0;
    for await (const one of subscriber) if (++read === 4 * workerData.count) break;
    parentPort.postMessage(read);
  })();`;

test('threads have their own handles', async () => {
  const { topic, subscriber } = await pair({ capacityBytes: 16 << 20 });
  const count = 5000;
  const workers = [0, 1, 2, 3].map((who) => new Worker(inWorker, {
    eval: true, workerData: { name: topic.name, who, count } }));
  const next = [0, 0, 0, 0];
  for (let read = 0; read < 4 * count;) {
    for (const one of await subscriber.receiveBatch()) {
      const [who, number] = one.value.toString().split(':').map(Number);
      assert.strictEqual(number, next[who]++);
      ++read;
    }
  }
  await Promise.all(workers.map((worker) => once(worker, 'exit')));
});

test('a thread that ends while it waits, or is ended, leaves nothing behind', async () => {
  const { topic, publisher, subscriber } = await pair();
  for (let round = 0; round < 10; ++round) {
    const worker = new Worker(inWorker, { eval: true, workerData: { name: topic.name, waits: true } });
    await once(worker, 'message');
    if (round % 2) publisher.publish('x');
    await worker.terminate();
  }
  for (let i = 0; i < 100 && await participants(topic) > 2; ++i) await sleep(10);
  assert.ok(await participants(topic) <= 2);
  subscriber.close();
});

test('a process that has nothing else to do ends, and waits while it waits', async () => {
  const { topic, publisher } = await pair();
  const run = (code_) => spawnSync(process.execPath, ['-e', code_], { encoding: 'utf8', timeout: 20000 });
  const idle = run(`require('leat').Topic.open('${topic.name}').then((t) => { t.subscriber(); t.publisher(); })`);
  assert.deepStrictEqual([idle.status, idle.stderr], [0, '']);
  publisher.publish('x');
  const waits = run(`require('leat').Topic.open('${topic.name}').then(async (t) => {
    const s = t.subscriber({ from: 'beginning' });
    console.log((await s.receive()).value.toString());
    setTimeout(() => s.close(), 100);
    await s.receive().catch((error) => console.log(error.code));
  })`);
  assert.deepStrictEqual([waits.status, waits.stdout, waits.stderr], [0, 'x\nstopped\n', '']);
  const exits = run(`require('leat').Topic.open('${topic.name}').then(async (t) => {
    t.subscriber().receive();
    setTimeout(() => process.exit(3), 50);
  })`);
  assert.deepStrictEqual([exits.status, exits.stderr], [3, '']);
});
