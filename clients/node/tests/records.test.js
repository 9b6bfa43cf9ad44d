'use strict';
// If this failed, what one process publishes would not be what another one reads.

const assert = require('node:assert');
const crypto = require('node:crypto');
const { once } = require('node:events');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { Worker } = require('node:worker_threads');
const { leat, pair, small, code, texts, sleep, fill, ticksDuring } = require('./helper');

test('any bytes arrive as they were', async () => {
  const { publisher, subscriber } = await pair({ timestamps: true });
  const bytes = Buffer.from([0, 1, 255, 10]);
  assert.strictEqual(publisher.publish(bytes), 0);
  publisher.publish('ä');
  publisher.publish('');
  publisher.publish(new Uint16Array([1, 2]));
  publisher.publish(new DataView(bytes.buffer, bytes.byteOffset + 1, 2));
  publisher.publish(new Uint8Array([7]));
  publisher.publish('v', { key: '', headers: [['a', bytes], ['a', ''], ['', 'b']] });
  publisher.publish('v', { key: bytes, headers: { name: 'value' }, partition: 0 });
  publisher.publish('v', { headers: new Map([['m', 'n']]) });
  publisher.publish('v', { headers: [] });
  publisher.publish('v', { key: null, headers: null, partition: null });
  const all = subscriber.poll();
  assert.deepStrictEqual(all.slice(0, 6).map((one) => [...one.value]),
    [[0, 1, 255, 10], [0xc3, 0xa4], [], [1, 0, 2, 0], [1, 255], [7]]);
  assert.ok(all.every((one) => Buffer.isBuffer(one.value) && one instanceof leat.LeatRecord && !one.isGap));
  assert.deepStrictEqual(all.map((one) => one.offset), [...all.keys()]);
  assert.strictEqual(all[0].key, null);
  assert.deepStrictEqual(all[0].headers, []);
  assert.ok(Math.abs(all[0].timestampMs - Date.now()) < 10000);
  assert.strictEqual(all[6].key.length, 0);
  assert.deepStrictEqual(all[6].headers.map(([name, value]) => [`${name}`, [...value]]),
    [['a', [0, 1, 255, 10]], ['a', []], ['', [98]]]);
  assert.deepStrictEqual([...all[7].key], [...bytes]);
  assert.deepStrictEqual(all[7].headers.map(String), ['name,value']);
  assert.deepStrictEqual(all[8].headers.map(String), ['m,n']);
  assert.strictEqual(all[10].key, null);
  assert.strictEqual(all[0].value.toString('hex'), '0001ff0a');
  assert.deepStrictEqual(all[0].value, bytes);  // Nothing but a Buffer.
  assert.deepStrictEqual(subscriber.poll(), []);
});

test('small and large values keep their bytes, whatever is read later', async () => {
  const { publisher, subscriber } = await pair({ capacityBytes: 64 << 20, segmentBytes: 8 << 20 });
  const kept = [];
  const wanted = [];
  for (let i = 0; i < 3000; ++i) {
    const value = Buffer.alloc(i % 500 === 0 ? 100000 + i : i % 300, i);
    wanted.push(value);
    publisher.publish(value);
    if (i % 7 === 0) kept.push(...subscriber.poll(1 + (i % 64)));
  }
  for (let some = subscriber.poll(1000); some.length !== 0; some = subscriber.poll(1000)) kept.push(...some);
  assert.strictEqual(kept.length, wanted.length);
  kept.forEach((one, i) => assert.ok(one.value.equals(wanted[i]), `record ${i}`));
});

test('without memory for the copies, nothing is lost', async () => {
  const { topic, publisher, subscriber } = await pair();
  const member = await (await topic.group('g', { from: 'beginning' })).join();
  const value = Buffer.alloc(100000, 7);
  publisher.publish(value);
  publisher.publish('small');
  const { allocUnsafeSlow } = Buffer;
  Buffer.allocUnsafeSlow = () => { throw new RangeError('no memory'); };
  try {
    assert.throws(() => subscriber.poll(1), RangeError);
    await assert.rejects(subscriber.receive(), RangeError);
    await assert.rejects(member.receive(), RangeError);
  } finally {
    Buffer.allocUnsafeSlow = allocUnsafeSlow;
  }
  assert.deepStrictEqual((await subscriber.receive()).value, value);
  const held = await member.receive();
  assert.deepStrictEqual([held.value, member.inFlight], [value, 1]);
  assert.strictEqual(member.acknowledge(held), 1);
  assert.deepStrictEqual(texts(subscriber.poll()), ['small']);
});

test('a value that is given to another thread takes no others with it', async () => {
  const { publisher, subscriber } = await pair();
  for (const size of [10, 20000]) {
    publisher.publishBatch([Buffer.alloc(size, 1), Buffer.alloc(size, 2)]);
    const [one, two] = subscriber.poll();
    try {
      structuredClone(one.value.buffer, { transfer: [one.value.buffer] });
    } catch {
      // Later versions of Node refuse it, earlier ones copy.
    }
    assert.deepStrictEqual([two.value.length, two.value.at(-1)], [size, 2]);
    publisher.publish('next');
    assert.deepStrictEqual(texts(subscriber.poll()), ['next']);
  }
});

test('a batch is visible at once, also of records', async () => {
  const { publisher, subscriber } = await pair();
  assert.strictEqual(publisher.publishBatch(['a', Buffer.from('b'), new Uint16Array([0x6463])]), 0);
  assert.strictEqual(publisher.publishBatch([{ value: 'e', key: 'k', headers: { h: 'v' } }, 'f']), 3);
  assert.strictEqual(await publisher.publishBatchAsync(new Set(['g', 'h'])), 5);
  const all = await subscriber.receiveBatch();
  assert.deepStrictEqual(texts(all), ['a', 'b', 'cd', 'e', 'f', 'g', 'h']);
  assert.deepStrictEqual([all[3].key.toString(), all[3].headers.map(String), all[4].key], ['k', ['h,v'], null]);
  assert.throws(() => publisher.publishBatch([]), code('invalid_argument'));
  const many = Array.from({ length: 5000 }, (_, i) => `${i}`);
  publisher.publishBatch(many);
  const read = [];
  while (read.length < 5000) read.push(...await subscriber.receiveBatch({ limit: 999 }));
  assert.deepStrictEqual(texts(read), many);
});

test('claims are committed, and aborted by an exception', async () => {
  const { publisher, subscriber } = await pair();
  assert.strictEqual(publisher.claim(3, (data) => { data.write('abc'); }), 0);
  assert.strictEqual(publisher.claim(9, (data, offset) => data.write(`at ${offset}`)), 1);
  assert.throws(() => publisher.claim(3, () => { throw new RangeError('mine'); }), RangeError);
  assert.throws(() => publisher.claim(3, () => 4), code('invalid_argument'));
  assert.throws(() => publisher.claim(3, async () => {}), TypeError);
  assert.throws(() => publisher.claim(3, () => 'x'), TypeError);
  publisher.claim(3, () => assert.throws(() => publisher.publish('x'), code('busy')));
  const claim = publisher.claim(4);
  assert.strictEqual(claim.offset, 7);
  claim.data.write('last');
  assert.throws(() => claim.commit(5), code('invalid_argument'));
  assert.strictEqual(claim.commit(), 7);
  assert.throws(() => claim.commit(), code('not_in_flight'));
  assert.throws(() => claim.abort(), code('not_in_flight'));
  publisher.claim(1).abort();
  assert.deepStrictEqual(texts(subscriber.poll()),
    ['abc', 'at 1', 'aborted', 'aborted', 'aborted', 'aborted', '\0\0\0', 'last', 'aborted']);
  assert.throws(() => publisher.claim(2, () => publisher.close()), code('invalid_argument'));
});

test('a full topic throws at once, or is waited for in the order of calls', async () => {
  const { publisher, subscriber } = await pair(small);
  const value = Buffer.alloc(1000, 65);
  const count = fill(publisher, value);
  await assert.rejects(publisher.publishAsync('x', { timeout: 0 }), code('full'));
  await assert.rejects(publisher.publishAsync('x'.repeat(900), { timeout: 20 }), code('timeout'));
  const mine = Buffer.alloc(900, 66);
  const pending = [publisher.publishAsync(mine), publisher.publishAsync('C'.repeat(900), { key: 'k' }),
    publisher.publishBatchAsync(['D'.repeat(900), 'E'])];
  mine.fill(0);  // It has been copied.
  assert.throws(() => publisher.publish('F'), code('full'));  // It would come before those that wait.
  assert.ok(await ticksDuring(sleep(300)) > 3);
  let read = [];
  while (read.length < count + 4) read = read.concat(subscriber.poll(), await sleep(1) ?? []);
  assert.deepStrictEqual(await Promise.all(pending), [count, count + 1, count + 2]);
  assert.deepStrictEqual(read.slice(count).map((one) => one.value.toString()[0]), ['B', 'C', 'D', 'E']);
  assert.strictEqual(publisher.publish('G'), count + 4);
});

test('policy fail does not wait', async () => {
  const { publisher } = await pair({ ...small, policy: 'fail' });
  fill(publisher, Buffer.alloc(1000));
  await assert.rejects(publisher.publishAsync(Buffer.alloc(1000)), code('full'));
});

test('room is waited for in the partition that the key selects', async () => {
  const topic = await leat.Topic.create('partitions', { ...small, partitions: 4 });
  const publisher = topic.publisher();
  const subscribers = [0, 1, 2, 3].map((partition) => topic.subscriber({ from: 'beginning', partition }));
  for (const key of ['21', 'foobar', 'a-little-bit-long-string', 'x', 'yy', 'zzz', '']) {
    assert.throws(() => { for (;;) publisher.publish(Buffer.alloc(1000), { key }); }, code('full'));
    const waiting = publisher.publishAsync(Buffer.alloc(1000), { key, timeout: 10000 });
    await sleep(10);
    for (const one of subscribers) while (one.poll(1000).length !== 0);
    await waiting;
  }
});

test('aborting a publish publishes nothing, and those behind go on', async () => {
  const { publisher, subscriber } = await pair(small);
  const count = fill(publisher, Buffer.alloc(1000));
  const aborts = [new AbortController(), new AbortController()];
  const first = publisher.publishAsync(Buffer.alloc(1000), { signal: aborts[0].signal });
  const second = publisher.publishAsync(Buffer.alloc(1000), { signal: aborts[1].signal });
  const third = publisher.publishAsync('third'.padEnd(1000));
  await sleep(5);
  aborts[1].abort();
  await assert.rejects(second, { name: 'AbortError' });
  aborts[0].abort(new RangeError('mine'));
  await assert.rejects(first, RangeError);
  let read = [];
  while (read.length <= count) read = read.concat(subscriber.poll(), await sleep(1) ?? []);
  assert.strictEqual(await third, count);
  assert.strictEqual(read[count].value.toString().trim(), 'third');
});

test('a wait never blocks the event loop, and ends with the record', async () => {
  const { publisher, subscriber } = await pair();
  const waiting = subscriber.receive();
  assert.ok(await ticksDuring(sleep(300)) > 3);
  publisher.publish('now');
  assert.strictEqual((await waiting).value.toString(), 'now');
  const started = performance.now();
  await assert.rejects(subscriber.receive({ timeout: 30 }), code('timeout'));
  assert.ok(performance.now() - started >= 29);
  await assert.rejects(subscriber.receiveBatch({ timeout: 0 }), code('timeout'));
  await assert.rejects(subscriber.wait({ timeout: 30 }), code('timeout'));
  const ready = subscriber.wait();
  await sleep(20);
  publisher.publish('one');
  publisher.publish('two');
  await ready;
  await subscriber.wait({ timeout: 0 });
  assert.strictEqual((await subscriber.receive()).value.toString(), 'one');
  assert.strictEqual(subscriber.offset(), 2);  // Although it has read ahead.
  await subscriber.wait({ timeout: 0 });
  assert.deepStrictEqual(texts(subscriber.poll()), ['two']);
  assert.strictEqual(subscriber.offset(), 3);
});

test('aborting at random moments loses no record', async () => {
  const { publisher, subscriber } = await pair();
  const read = [];
  let published = 0;
  for (let round = 0; round < 300; ++round) {
    const abort = new AbortController();
    const waiting = subscriber.receive({ signal: abort.signal });
    const publish = () => publisher.publish(`${published++}`);
    const steps = [publish, () => abort.abort(), publish];
    for (const step of steps.slice(round % 3).concat(steps.slice(0, round % 3))) {
      if (round % 2) await sleep(Math.random() < 0.5 ? 0 : 1);
      step();
    }
    try {
      read.push((await waiting).value.toString());
    } catch (error) {
      assert.strictEqual(error.name, 'AbortError');
    }
  }
  while (read.length < published) read.push((await subscriber.receive()).value.toString());
  assert.deepStrictEqual(read, Array.from({ length: published }, (_, i) => `${i}`));
  await assert.rejects(subscriber.receive({ signal: AbortSignal.abort() }), { name: 'AbortError' });
});

test('for await reads all, and loses nothing when it is left', async () => {
  const { publisher, subscriber } = await pair();
  publisher.publishBatch(Array.from({ length: 200 }, (_, i) => `${i}`));
  const read = [];
  for await (const one of subscriber) {
    read.push(one.value.toString());
    if (read.length % 10 === 0) break;
  }
  assert.strictEqual(subscriber.offset(), 10);
  const iterator = subscriber[Symbol.asyncIterator]();
  const next = iterator.next();
  await iterator.return();
  read.push(`${(await next).value.value}`);  // It was there, so it was given.
  assert.deepStrictEqual(await iterator.next(), { done: true, value: undefined });
  read.push(...texts(await subscriber.receiveBatch({ limit: 9 })));
  for await (const one of subscriber.entries()) {
    read.push(one.value.toString());
    if (read.length === 200) break;
  }
  assert.deepStrictEqual(read, Array.from({ length: 200 }, (_, i) => `${i}`));
  const waiting = subscriber.entries();
  const nothing = waiting.next();
  await sleep(5);
  await waiting.return();
  assert.deepStrictEqual(await nothing, { done: true, value: undefined });
  const both = subscriber.entries();
  const two = [both.next(), both.next()];
  publisher.publishBatch(['first', 'second']);
  assert.deepStrictEqual((await Promise.all(two)).map(({ value }) => `${value.value}`), ['first', 'second']);
  const abort = new AbortController();
  const aborted = subscriber.entries({ signal: abort.signal }).next();
  await sleep(5);
  abort.abort();
  await assert.rejects(aborted, { name: 'AbortError' });
  publisher.publish('after');
  assert.strictEqual((await subscriber.receive()).value.toString(), 'after');
});

// Publishes numbers, at moments that have nothing to do with those of this thread, until it is told to end.
function publishesAlways(topic, told) {
  return new Worker(`
    const { workerData: { name, told }, parentPort } = require('node:worker_threads');
    (async () => {
      const publisher = (await require('leat').Topic.open(name)).publisher();
      let published = 0;
      while (Atomics.wait(told, 0, 0, Math.random() * 2) === 'timed-out') publisher.publish(String(published++));
      parentPort.postMessage(published);
    })();`, { eval: true, workerData: { name: topic.name, told } });
}

test('200 iterations cancelled at random moments lose no record', async () => {
  const { topic, subscriber } = await pair();
  const member = await (await topic.group('g', { from: 'beginning' })).join();
  const told = new Int32Array(new SharedArrayBuffer(4));
  const worker = publishesAlways(topic, told);
  const readers = [subscriber, member].map((reader) => ({ reader, read: [], cancelled: 0 }));
  // Also between the steps of promises: what has just arrived may be on its way.
  const moment = async () => {
    const kind = Math.floor(Math.random() * 12);
    if (kind < 3) await sleep(kind);
    else if (kind < 6) await new Promise(setImmediate);
    else for (let i = 6; i < kind; ++i) await undefined;
  };
  const take = (one, entry) => {
    one.read.push(entry.value.toString());
    if (one.reader === member) member.acknowledge(entry);
  };
  await Promise.all(readers.map(async (one) => {
    for (let round = 0; one.cancelled < 200; ++round) {
      const abort = new AbortController();
      const iterator = one.reader.entries({ signal: abort.signal });
      const waits = Array.from({ length: 1 + (round % 2) }, () => iterator.next());
      if (round % 5 !== 0) await moment();
      if (round % 3 === 0) abort.abort();
      else iterator.return();
      for (const { status, value, reason } of await Promise.allSettled(waits)) {
        if (value?.value !== undefined) take(one, value.value);
        else ++one.cancelled;
        if (status === 'rejected') assert.strictEqual(reason.name, 'AbortError');
      }
      if (round % 10 !== 0) continue;
      for await (const entry of one.reader) {
        take(one, entry);
        break;
      }
    }
  }));
  Atomics.store(told, 0, 1);
  Atomics.notify(told, 0);
  const [published] = await once(worker, 'message');
  for (const one of readers) {
    while (one.read.length < published) take(one, await one.reader.receive({ timeout: 5000 }));
    assert.deepStrictEqual(one.read, Array.from({ length: published }, (_, i) => `${i}`));
    await assert.rejects(one.reader.receive({ timeout: 0 }), code('timeout'));
  }
});

test('stop ends waits until resume, close ends them for good', async () => {
  const { publisher, subscriber } = await pair(small);
  const waits = [subscriber.receive(), (async () => { for await (const one of subscriber) assert.ok(one); })()];
  await assert.rejects(waits[1], code('busy'));  // One at a time.
  subscriber.stop();
  await assert.rejects(waits[0], code('stopped'));
  await assert.rejects(subscriber.wait(), code('stopped'));
  publisher.publish('still delivered');
  assert.strictEqual((await subscriber.receive()).value.toString(), 'still delivered');
  for await (const one of subscriber) assert.fail(one);
  assert.ok(subscriber.stopped);
  subscriber.resume();
  const closing = [subscriber.receive(), publisher.publishAsync('x')];
  assert.strictEqual(await closing[1], 1);
  await closing[0];
  const last = subscriber.receive();
  await sleep(5);
  subscriber.close();
  subscriber.close();
  await assert.rejects(last, code('stopped'));
  assert.throws(() => subscriber.poll(), code('invalid_argument'));
});

test('a publisher that waits ends by stop, close and deletion', async () => {
  for (const end of ['stop', 'close', 'delete']) {
    const { topic, publisher, subscriber } = await pair(small);
    fill(publisher, Buffer.alloc(1000));
    const waits = Promise.allSettled([1, 2].map(() => publisher.publishAsync(Buffer.alloc(1000))));
    await sleep(10);
    if (end === 'delete') await leat.Topic.delete(topic.name, { force: true });
    else publisher[end]();
    for (const { reason } of await waits) code(end === 'delete' ? 'deleted' : 'stopped')(reason);
    subscriber.close();
  }
});

test('waitAny gives the first that is ready', async () => {
  const one = await pair();
  const two = await pair();
  const all = [one.subscriber, two.subscriber];
  await assert.rejects(leat.waitAny(all, { timeout: 10 }), code('timeout'));
  await assert.rejects(leat.waitAny([]), code('invalid_argument'));
  await assert.rejects(leat.waitAny([one.topic]), TypeError);
  const waiting = leat.waitAny(all);
  await sleep(10);
  two.publisher.publish('x');
  assert.strictEqual(await waiting, 1);
  const abort = new AbortController();
  two.subscriber.poll();
  const aborted = leat.waitAny(all, { signal: abort.signal });
  abort.abort();
  await assert.rejects(aborted, { name: 'AbortError' });
  two.publisher.publish('x');
  assert.strictEqual(await leat.waitAny(all, { timeout: 0 }), 1);  // Not over before it has looked at all.
  one.publisher.publish('x');
  assert.strictEqual(await leat.waitAny(all), 0);
  const many = Array.from({ length: 64 }, () => one.topic.subscriber());
  const last = leat.waitAny(many);
  await sleep(10);
  one.publisher.publish('x');
  assert.ok(await last >= 0);
  await assert.rejects(leat.waitAny([...many, one.subscriber]), code('invalid_argument'));
});

test('closing a durable topic does not block, and what is begun later finds it closed', async () => {
  const open = () => leat.Topic.openOrCreate('closing', { durable: 'interval', syncInterval: 3600000 });
  const window = path.join(process.env.LEAT_DIR, 'closing');  // The last to close deletes it, at the end.
  for (let round = 1; round <= 3; ++round) {
    const topic = await open();
    const publisher = topic.publisher();
    for (let i = 0; i < 20; ++i) publisher.publish(Buffer.alloc(10000, i));
    // Nothing that the pool does can be done before these are.
    for (let i = 0; i < 4; ++i) crypto.pbkdf2('x', 'y', 100000, 64, 'sha512', () => {});
    publisher.close();
    topic.close();
    assert.ok(fs.existsSync(window), 'close() ended it itself');
    const again = await open();
    assert.strictEqual((await again.info()).partitions[0].end, 20 * round);
    again.close();
  }
  await leat.Topic.delete('closing');
  await assert.rejects(leat.Topic.open('closing'), code('not_found'));
});

test('durable topics: flush, and publishing that waits for stable storage', async () => {
  const topic = await leat.Topic.create('durable', { durable: 'fsync' });
  const publisher = topic.publisher();
  assert.strictEqual(publisher.lastOffset, null);
  assert.strictEqual(await publisher.publishAsync('a'), 0);
  assert.strictEqual(publisher.durableOffset(), 1);
  assert.strictEqual(await publisher.publishBatchAsync(['b', 'c']), 1);
  assert.strictEqual(publisher.lastOffset, 2);
  const committed = topic.publisher({ acknowledge: 'committed' });
  assert.strictEqual(committed.publish('d'), 3);
  committed.requestSync();
  await committed.flush();
  await Promise.all([committed.flush(), committed.flush({ timeout: 5000 })]);
  assert.strictEqual(committed.durableOffset(), 4);
  const subscriber = topic.subscriber({ from: 'beginning' });
  assert.deepStrictEqual(texts(await subscriber.receiveBatch()), ['a', 'b', 'c', 'd']);
  const other = await pair();
  await assert.rejects(other.publisher.flush(), code('needs_durable'));
  await assert.rejects(other.topic.shrink(), code('needs_growing'));
});
