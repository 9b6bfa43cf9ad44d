'use strict';
// If this failed, a mistake in JavaScript would crash the process, or harm others.

const assert = require('node:assert');
const { constants } = require('node:buffer');
const { spawnSync } = require('node:child_process');
const { once } = require('node:events');
const { test } = require('node:test');
const { Worker } = require('node:worker_threads');
require('node:v8').setFlagsFromString('--expose-gc');
const { leat, pair, code, texts, sleep } = require('./helper');

const wrong = [undefined, null, 5, true, {}, [], () => {}, Symbol('s'), 5n, new ArrayBuffer(3), 'text'];

test('wrong types throw', async () => {
  const { topic, publisher, subscriber } = await pair();
  const group = await topic.group('g');
  const member = await group.join();
  for (const value of wrong.slice(0, -1)) {
    assert.throws(() => publisher.publish(value), TypeError);
    assert.throws(() => publisher.publish(value, {}), TypeError);
    assert.throws(() => publisher.publishBatch([value]), TypeError);
    assert.throws(() => publisher.publishBatch([{ value }]), TypeError);
    await assert.rejects(publisher.publishAsync(value), TypeError);
    if (value !== undefined && value !== null) assert.throws(() => publisher.publish('x', { key: value }), TypeError);
    assert.throws(() => publisher.publish('x', { headers: [value] }), TypeError);
    assert.throws(() => publisher.publish('x', { headers: [['x', value]] }), TypeError);
    if (typeof value !== 'number') assert.throws(() => publisher.claim(value), TypeError);
  }
  for (const value of wrong.filter((one) => one !== undefined && one !== null && one !== 5)) {
    assert.throws(() => publisher.publish('x', { partition: value }), TypeError);
    assert.throws(() => subscriber.poll(value), TypeError);
    assert.throws(() => subscriber.offset(value), TypeError);
    await assert.rejects(subscriber.receive({ timeout: value }), TypeError);
    await assert.rejects(subscriber.receive({ signal: value }), TypeError);
    await assert.rejects(member.receiveBatch({ limit: value }), TypeError);
    assert.throws(() => group.position(value), TypeError);
  }
  for (const value of [null, 5, 'x', true]) {
    assert.throws(() => publisher.publish('x', value), TypeError);
    await assert.rejects(subscriber.receive(value), TypeError);
  }
  assert.throws(() => subscriber.poll(0), TypeError);
  assert.throws(() => subscriber.poll(65537), TypeError);
  assert.throws(() => topic.publisher({ partition: 2 ** 32 - 1 }), TypeError);  // To C that is any.
  assert.throws(() => topic.subscriber({ from: { offset: 2n ** 70n } }), TypeError);
  assert.throws(() => publisher.claim(-1), TypeError);
  assert.throws(() => publisher.claim(2 ** 40), code('too_large'));
  await assert.rejects(subscriber.receive({ timeout: NaN }), TypeError);
  await assert.rejects(subscriber.receive({ timeout: -1 }), TypeError);
});

test('methods of another handle throw', async () => {
  const { topic, publisher, subscriber } = await pair();
  const { prototype } = leat.Publisher;
  for (const self of [subscriber, topic, {}, undefined, Object.create(prototype)]) {
    assert.throws(() => prototype.publish.call(self, 'x'), TypeError);
    assert.throws(() => leat.Subscriber.prototype.offset.call(self === subscriber ? publisher : self), TypeError);
  }
  for (const type of [leat.Topic, leat.Publisher, leat.Subscriber, leat.Group, leat.Member, leat.Claim, leat.Delivery]) {
    assert.throws(() => new type(), TypeError);
    assert.throws(() => new type(Symbol('inside'), {}), TypeError);
  }
});

test('a closed handle throws, and closing is allowed at any time', async () => {
  const { topic, publisher, subscriber } = await pair();
  const group = await topic.group('g');
  const member = await group.join();
  const claim = publisher.claim(3);
  const tasks = [topic.group('h'), group.join(), topic.shrink()];  // Under way when they are closed.
  for (const one of [topic, publisher, subscriber, group, member]) {
    one.close();
    one.close();
    assert.ok(one.closed);
  }
  const settled = await Promise.allSettled(tasks);
  assert.strictEqual(settled[0].value.name, 'h');
  settled[1].value.close();
  for (const call of [
    () => topic.publisher(), () => topic.subscriber(), () => topic.name, () => topic.partitions,
    () => publisher.publish('x'), () => publisher.publish('x', {}), () => publisher.publishBatch(['x']),
    () => publisher.publishBatch([{ value: 'x' }]), () => publisher.claim(1), () => publisher.durableOffset(),
    () => publisher.partition, () => publisher.stop(), () => claim.commit(), () => claim.abort(),
    () => subscriber.poll(), () => subscriber.offset(), () => subscriber.stop(), () => subscriber.isLossy,
    () => group.info(), () => group.seek('end'), () => group.name, () => member.acknowledgeAll(), () => member.inFlight,
  ]) assert.throws(call, code('invalid_argument'));
  for (const call of [
    () => topic.group('g'), () => topic.findGroup('g'), () => topic.deleteGroup('g'), () => topic.shrink(), () => topic.info(),
    () => publisher.publishAsync('x'), () => publisher.flush(), () => subscriber.receive(), () => subscriber.wait(),
    () => subscriber[Symbol.asyncIterator]().next(), () => group.join(), () => member.receive(), () => member.wait(),
    () => leat.waitAny([subscriber]),
  ]) await assert.rejects(call(), code('invalid_argument'));
});

test('getters may close what a call is about to use', async () => {
  const closing = (handle, value) => ({ get() { handle.close(); return value; }, enumerable: true });
  const options = (name, descriptor) => Object.defineProperty({}, name, descriptor);
  const { topic, publisher, subscriber } = await pair();
  const again = () => leat.Topic.open(topic.name);
  const one = await again();
  assert.throws(() => one.publisher(options('exclusive', closing(one, false))), code('invalid_argument'));
  const two = await again();
  assert.throws(() => two.subscriber(options('from', closing(two, 'end'))), code('invalid_argument'));
  const three = await again();
  await assert.rejects(three.group('g', options('mode', closing(three, 'at_least_once'))), code('invalid_argument'));
  const group = await topic.group('g');
  await assert.rejects(group.join(options('name', closing(group, 'x'))), code('invalid_argument'));
  for (const call of [
    (own) => own.publish('x', options('key', closing(own, 'k'))),
    (own) => own.publishBatch([options('value', closing(own, 'v'))]),
    (own) => own.publishAsync('x', options('timeout', closing(own, 5))),
    (own) => own.claim(3, () => own.close()),
  ]) await assert.rejects(async () => call(topic.publisher()), code('invalid_argument'));
  await assert.rejects(subscriber.receive(options('timeout', closing(subscriber, 5))), code('invalid_argument'));
  publisher.publish('still here');
});

test('a signal that is none is refused, or what it throws is not caught', async () => {
  const { publisher, subscriber } = await pair();
  await assert.rejects(subscriber.receive({ signal: { addEventListener() {} } }), TypeError);
  const abort = new AbortController();
  const opening = leat.Topic.open('never', { timeout: Infinity, signal: abort.signal });
  abort.abort(null);
  await assert.rejects(async () => {
    try {
      await opening;
    } catch (reason) {
      assert.strictEqual(reason, null);
      throw new Error('aborted');
    }
  }, { message: 'aborted' });
  publisher.publish('x');
  const program = `
    process.on('uncaughtException', (error) => { console.log(error.message); process.exit(); });
    const { Topic } = require('leat');
    (async () => {
      const topic = await Topic.openOrCreate('signals');
      const signal = { addEventListener() {}, removeEventListener() { throw new Error('mine'); } };
      setTimeout(() => topic.publisher().publish('x'), 10);
      await topic.subscriber().receive({ signal });
    })();`;
  const done = spawnSync(process.execPath, ['-e', program], { encoding: 'utf8', timeout: 20000 });
  assert.deepStrictEqual([done.status, done.stdout, done.stderr], [0, 'mine\n', '']);
});

test('sizes over 4 GiB are refused', async () => {
  const { publisher, subscriber } = await pair();
  const part = Buffer.alloc(2 ** 30);  // Nobody touches them, so they take no memory.
  // Before Node 22 a Buffer has at most 4 GiB: as 32 bits none.
  const bytes = new ArrayBuffer(Math.min(constants.MAX_LENGTH, 2 ** 32 + 5));
  const all = [Buffer.from(bytes), new DataView(bytes), new Float64Array(bytes, 0, 2 ** 29)];
  const headers = Array.from({ length: 5 }, () => ['name', part]);
  for (const large of [...all, part]) {
    for (const publish of [publisher.publish.bind(publisher), publisher.publishAsync.bind(publisher)]) {
      const refused = (...given) => assert.rejects(async () => publish(...given), code('too_large'));
      await refused(large);
      await refused(large, {});
      await refused('x', { key: large });
      await refused('x', { headers: [[large, 'x']] });
      await refused('x', { headers: { x: large } });
    }
    if (large !== part) assert.throws(() => publisher.publishBatch([large]), code('too_large'));
    if (large !== part) assert.throws(() => publisher.publishBatch(['x', large]), code('too_large'));
    assert.throws(() => publisher.publishBatch([{ value: large }]), code('too_large'));
    assert.throws(() => publisher.publishBatch(['x', { value: 'x', key: large }]), code('too_large'));
    await assert.rejects(publisher.publishBatchAsync([{ value: 'x', headers: [['x', large]] }]), code('too_large'));
  }
  assert.throws(() => publisher.publish('x', { headers }), code('too_large'));
  assert.throws(() => publisher.publishBatch([part, part, part, part, part]), code('too_large'));
  assert.throws(() => publisher.publishBatch(Array(5).fill({ value: part })), code('too_large'));
  await assert.rejects(publisher.publishBatchAsync([part, part, part, part]), code('too_large'));
  for (const size of [2 ** 32, 2 ** 32 + 5, 2 ** 40, Number.MAX_SAFE_INTEGER]) {
    assert.throws(() => publisher.claim(size), code('too_large'));
  }
  assert.throws(() => publisher.claim(5, () => 2 ** 32 + 1), code('invalid_argument'));
  const claim = publisher.claim(5);
  assert.throws(() => claim.commit(2 ** 32 + 1), code('invalid_argument'));
  claim.commit();
  assert.deepStrictEqual(texts(subscriber.poll()), ['aborted', '\0\0\0\0\0']);
});

test('handles and deliveries do not get to another thread', async () => {
  const { topic, publisher, subscriber } = await pair();
  const group = await topic.group('g');
  const member = await group.join();
  publisher.publish('x');
  const given = { topic, publisher, subscriber, group, member, claim: publisher.claim(3), delivery: await member.receive() };
  const worker = new Worker(`
    const { workerData, parentPort } = require('node:worker_threads');
    const assert = require('node:assert');
    const { Topic, Publisher, Subscriber, Group, Member, Claim } = require('leat');
    (async () => {
      const { name, given } = workerData;
      const own = await (await (await Topic.open(name)).findGroup('g')).join();
      for (const call of [
        () => Topic.prototype.publisher.call(given.topic), () => Publisher.prototype.publish.call(given.publisher, 'x'),
        () => Subscriber.prototype.poll.call(given.subscriber), () => Group.prototype.info.call(given.group),
        () => Member.prototype.acknowledgeAll.call(given.member), () => Claim.prototype.commit.call(given.claim),
        () => Publisher.prototype.close.call(given.publisher), () => own.acknowledge(given.delivery),
        () => own.acknowledge([given.delivery]), () => own.requeue(given.delivery),
      ]) assert.throws(call, TypeError);
      parentPort.postMessage('refused');
      process.exit();
    })();`, { eval: true, workerData: { name: topic.name, given } });
  assert.deepStrictEqual(await once(worker, 'message'), ['refused']);
  await once(worker, 'exit');
  assert.strictEqual(given.claim.commit(), 1);
  assert.strictEqual(member.acknowledge(given.delivery), 1);
});

test('what was read or claimed may be kept: it is a copy', async () => {
  const { topic, publisher, subscriber } = await pair();
  const member = await (await topic.group('g')).join();
  publisher.publish('value', { key: 'key', headers: { name: 'header' } });
  const { name } = topic;
  const kept = [subscriber.poll()[0], await member.receive()];
  const claims = [publisher.claim(5), undefined, undefined];
  claims[0].commit();
  claims[1] = publisher.claim(5);
  claims[1].abort();
  claims[2] = publisher.claim(5);
  for (const one of [subscriber, member, publisher, topic]) one.close();
  await leat.Topic.delete(name, { force: true });
  for (const { value, key, headers } of kept) {
    assert.deepStrictEqual([value, key, ...headers].map(String), ['value', 'key', 'name,header']);
    value.fill('x');
  }
  for (const { data } of claims) assert.strictEqual(data.fill('x').toString(), 'xxxxx');
});

test('values that were given away, or change, harm nobody', async () => {
  const { publisher, subscriber } = await pair();
  const given = new Uint8Array(100);
  structuredClone(given.buffer, { transfer: [given.buffer] });
  publisher.publish(given);
  publisher.publishBatch([given, { value: given, key: given }]);
  publisher.publish(new Uint8Array(new SharedArrayBuffer(3)));
  assert.deepStrictEqual(subscriber.poll().map((one) => one.value.length), [0, 0, 0, 3]);
});

test('a claim that nobody finishes is aborted by the collector', async () => {
  const { publisher, subscriber } = await pair();
  (() => { publisher.claim(10); })();
  const gc = require('node:vm').runInNewContext('gc');
  for (let i = 0; i < 100 && subscriber.poll().length === 0; ++i) {
    gc();
    await sleep(10);
  }
  publisher.publish('after');
  assert.strictEqual((await subscriber.receive({ timeout: 5000 })).value.toString(), 'after');
});
