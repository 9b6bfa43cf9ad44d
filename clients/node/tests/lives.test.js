'use strict';
// If this failed, a process that runs for long would lose memory, descriptors or threads, or its threads would
// disturb each other.

const { setFlagsFromString } = require('node:v8');
setFlagsFromString('--expose-gc');
setFlagsFromString('--no-opt');  // The compiler takes memory at any moment.
const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { once } = require('node:events');
const { spawnSync } = require('node:child_process');
const { Worker } = require('node:worker_threads');
const { leat, pair, code, sleep } = require('./helper');
const allocated = require('malloc.node');
const { native } = require(path.join(path.dirname(require.resolve('leat')), 'lib', 'native'));

const gc = require('node:vm').runInNewContext('gc');
const descriptors = () => fs.readdirSync('/proc/self/fd').length;
const threads = () => fs.readdirSync('/proc/self/task').length;
const participants = async (topic) => (await topic.info()).participants.length;

test('10,000 open and close: nothing grows', async () => {
  const { topic, publisher, subscriber } = await pair({ capacityBytes: 1 << 20, segmentBytes: 1 << 17 });
  subscriber.close();
  const round = async () => {
    const again = await leat.Topic.open(topic.name);
    const handles = [again, again.publisher(), again.subscriber(), await again.group('g')];
    handles.push(await handles[3].join());
    handles[1].publish('x');
    handles[1].claim(9);  // Closing its publisher aborts it.
    await handles[2].receive();
    const waiting = [handles[2], handles[4]].map((one) => one.receive());
    const first = await waiting[1];
    assert.strictEqual(handles[4].acknowledge(first), 1);
    waiting[1] = handles[4].receive();
    handles.forEach((one) => one.close());
    for (const one of waiting) await assert.rejects(one, code('stopped'));
  };
  const figures = () => {
    gc();
    const { rss, heapUsed } = process.memoryUsage();
    return { descriptors: descriptors(), threads: threads(), memory: rss / (1 << 20), inC: allocated(), inJs: heapUsed };
  };
  for (let i = 0; i < 700; ++i) await round();  // V8 takes the most at first.
  const before = figures();
  const parts = [before];
  const rounds = 250;
  for (let part = 1; part <= 8; ++part) {  // 12,000 of six kinds.
    for (let i = 0; i < rounds; ++i) await round();
    parts.push(figures());
  }
  const after = parts[8];
  // What is leaked grows in nearly each part; what V8 takes for itself grows in few, and shrinks in others.
  for (const where of ['inC', 'inJs']) {
    const grown = parts.slice(1).map((now, part) => (now[where] - parts[part][where]) / rounds).sort((a, b) => a - b);
    assert.ok(grown[3] < 100, `${grown} bytes a round ${where}`);
  }
  assert.ok(after.descriptors <= before.descriptors + 2, `${after.descriptors} descriptors, not ${before.descriptors}`);
  assert.ok(after.threads <= before.threads + 2, `${after.threads} threads, not ${before.threads}`);
  assert.ok(after.memory < before.memory + 20, `${after.memory} MiB, not ${before.memory}`);
  assert.ok(await participants(topic) <= 2);
  publisher.close();
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

test('the collector of another thread closes what that thread dropped', async () => {
  const { topic } = await pair();
  const had = await participants(topic);
  const worker = new Worker(`
    const { workerData, parentPort } = require('node:worker_threads');
    const collect = require('node:vm').runInNewContext('gc');
    (async () => {
      const topic = await require('leat').Topic.open(workerData);
      const group = await topic.group('g');
      await (async () => {
        for (let i = 0; i < 20; ++i) topic.publisher().claim((topic.subscriber(), await group.join(), 5));
      })();
      parentPort.once('message', () => setInterval(collect, 10));
      parentPort.postMessage('dropped');
    })();`, { eval: true, workerData: topic.name });
  await once(worker, 'message');
  assert.ok(await participants(topic) > had);
  worker.postMessage('collect');
  for (let i = 0; i < 500 && await participants(topic) > had; ++i) await sleep(10);
  assert.strictEqual(await participants(topic), had);
  await worker.terminate();
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

test('an idle wait costs under a thousandth of the CPU', async () => {
  const { topic, publisher, subscriber } = await pair();
  const member = await (await topic.group('g')).join();
  const receiving = [subscriber.receive(), member.receive()];
  await sleep(10);
  publisher.publish('x');  // Their descriptors stay readable: they find it without looking for more.
  await Promise.all(receiving);
  const idle = topic.subscriber();
  const waits = [subscriber.wait(), member.receive(), (async () => { for await (const one of idle) assert.fail(one); })()];
  let ended = 0;
  for (const one of waits) one.catch(() => {}).finally(() => { ++ended; });
  gc();
  await sleep(300);  // What Node itself does on other threads is done.
  let rounds = 0;
  const { arm } = native;
  native.arm = (...all) => { ++rounds; return arm(...all); };
  // Of the process' own time. Cold caches of a loaded machine add to it, so the least of three counts.
  let least = Infinity;
  for (let i = 0; i < 3 && least >= 0.001; ++i) {
    const before = process.cpuUsage();
    await sleep(3000);
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, (user + system) / 3e6);
  }
  native.arm = arm;
  assert.ok(rounds <= 3, `looked ${rounds} times`);
  assert.ok(least < 0.001, `${least} of a CPU`);
  assert.strictEqual(ended, 0);
  for (const one of [subscriber, member, idle]) one.close();
  const [first, second, last] = await Promise.allSettled(waits);
  for (const { reason } of [first, second]) code('stopped')(reason);
  assert.strictEqual(last.status, 'fulfilled');
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
