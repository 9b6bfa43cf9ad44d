'use strict';
// If this failed, records that members of groups share would be lost, or done twice.

const assert = require('node:assert');
const { test } = require('node:test');
const { leat, pair, code, texts, sleep, ticksDuring } = require('./helper');

async function workers(options) {
  const { topic, publisher } = await pair();
  const group = await topic.group('workers', { from: 'beginning', ...options });
  return { topic, publisher, group, member: await group.join({ name: 'one' }) };
}

test('members acknowledge one, several, up to one and all', async () => {
  const { topic, publisher, group, member } = await workers();
  assert.ok(group.wasCreated);
  assert.strictEqual((await topic.group('workers')).wasCreated, false);
  publisher.publishBatch(Array.from({ length: 12 }, (_, i) => `${i}`));
  const first = await member.receive();
  assert.ok(first instanceof leat.Delivery);
  assert.strictEqual(first.deliveries, 1);
  assert.strictEqual(member.acknowledge(first), 1);
  assert.throws(() => member.acknowledge(first), code('not_in_flight'));
  const some = await member.receiveBatch({ limit: 4 });
  assert.deepStrictEqual(texts(some), ['1', '2', '3', '4']);
  assert.strictEqual(member.inFlight, 4);
  assert.strictEqual(member.acknowledge([some[3], some[1], first]), 2);
  assert.strictEqual(member.acknowledgeUpTo(some[2]), 2);
  assert.strictEqual(member.acknowledge([]), 0);
  await member.receiveBatch({ limit: 5 });
  assert.strictEqual(member.acknowledgeAll(), 5);
  const back = await member.receive();
  member.requeue(back);
  const again = await member.receive();
  assert.deepStrictEqual([again.offset, again.deliveries], [back.offset, 2]);
  member.requeue(again, { delay: 300 });
  const next = await member.receive();
  assert.strictEqual(next.offset, 11);
  assert.ok(await ticksDuring(member.receive()) >= 2);  // After its delay.
  assert.strictEqual(group.position(), 12);
  assert.strictEqual(group.released() <= 12, true);
  const info = group.info();
  assert.deepStrictEqual([info.mode, info.members[0].name, info.offsets], ['at_least_once', 'one', [12]]);
  await assert.rejects(member.receive({ timeout: 20 }), code('timeout'));
  group.seek({ offset: 3 });
  assert.strictEqual((await member.receive()).offset, 3);
  group.seek('end', 0);
  assert.strictEqual(group.name, 'workers');
  assert.strictEqual(group.deadLetterTopic, '');
  assert.deepStrictEqual(topic.groupNames(), ['workers']);
});

test('a member acknowledges only what it holds itself', async () => {
  const { publisher, group, member } = await workers();
  const other = await group.join();
  publisher.publishBatch(['a', 'b']);
  const mine = await member.receive();
  assert.throws(() => other.acknowledge(mine), code('not_in_flight'));
  assert.throws(() => other.acknowledge([mine]), code('not_in_flight'));
  assert.throws(() => other.acknowledgeUpTo(mine), code('not_in_flight'));
  assert.throws(() => other.requeue(mine), code('not_in_flight'));
  assert.throws(() => member.acknowledge('x'), TypeError);
  assert.throws(() => member.acknowledge(undefined), TypeError);
  assert.throws(() => member.acknowledge(['x']), TypeError);
  assert.throws(() => member.acknowledge({ ...mine }), TypeError);
  assert.throws(() => member.requeue(mine, { delay: -1 }), TypeError);
  assert.throws(() => new mine.constructor(null, Buffer.alloc(1)), TypeError);
  member.close();
  assert.throws(() => member.acknowledge(mine), code('invalid_argument'));
  const taken = [await other.receive(), await other.receive()];
  assert.deepStrictEqual(taken.map((one) => one.deliveries).sort(), [1, 2]);
});

test('waits of members end by stop, close and the end of the group', async () => {
  const { topic, group, member } = await workers();
  const waiting = member.receive();
  await sleep(5);
  member.stop();
  await assert.rejects(waiting, code('stopped'));
  member.resume();
  const ready = member.wait({ timeout: 20 });
  await assert.rejects(ready, code('timeout'));
  const other = await group.join();
  const closing = other.receive();
  await sleep(5);
  other.close();
  await assert.rejects(closing, code('stopped'));
  const last = member.receive();
  await assert.rejects(topic.deleteGroup('workers'), code('busy'));
  const [deleted] = await Promise.allSettled([last, topic.deleteGroup('workers', { force: true })]);
  code('closed')(deleted.reason);
  await assert.rejects(topic.findGroup('workers'), code('not_found'));
});

test('a member holds no more than its group allows', async () => {
  const { publisher, member } = await workers({ inFlight: 2, lease: 60000, maxDeliveries: 3 });
  publisher.publishBatch(['a', 'b', 'c']);
  await member.receiveBatch({ limit: 2 });
  await assert.rejects(member.receive(), code('in_flight_full'));
});
