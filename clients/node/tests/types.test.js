'use strict';
// If this failed, TypeScript would accept what fails when it runs, or refuse what works; or a misspelt option would be
// ignored, and a wait have no end.

const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { leat, pair, small, code, directory } = require('./helper');

const installed = path.dirname(require.resolve('leat/package.json'));
const { known } = require(path.join(installed, 'lib/options.js'));
const types = fs.readFileSync(path.join(installed, 'index.d.ts'), 'utf8');

// name -> the text of its body.
function declared(kind) {
  const found = types.matchAll(new RegExp(`^(export )?(?:declare )?${kind} (\\w+)[^{]*\\{\n(.*?)^\\}`, 'gms'));
  return new Map([...found].map(([, isExported, name, body]) => [name, { isExported: Boolean(isExported), body }]));
}

function membersOf(body) {
  const found = body.matchAll(/^ {2}(static )?(readonly )?(\[Symbol\.\w+\]|\w+)\??[(:<]/gm);
  return [...found].map(([, isStatic, isField, name]) => ({ isStatic: Boolean(isStatic), isField: Boolean(isField), name }));
}

const nameOf = (key) => (typeof key === 'symbol' ? `[${key.description}]` : key);
const isPublic = (key) => key !== 'constructor' && (typeof key !== 'symbol' || key.description.startsWith('Symbol.'));

test('what the types export is exported, and nothing else', () => {
  const values = [...types.matchAll(/^export (?:class|const|function) (\w+)/gm)].map(([, name]) => name);
  assert.deepStrictEqual(Object.keys(leat).sort(), values.sort());
  assert.match(types, /^export \{\};$/m);  // Without it, what is only declared would be exported too.
  for (const [name, { isExported }] of declared('class')) assert.ok(isExported, name);
});

test('each class has the members that its type has', () => {
  for (const [name, { body }] of declared('class')) {
    const { prototype } = leat[name];
    const members = membersOf(body).filter((one) => one.name !== 'constructor');
    // What a record holds, it has itself, and no prototype.
    const methods = members.filter((one) => !one.isStatic && !one.isField).map((one) => one.name);
    for (const method of methods) {
      const key = method.startsWith('[') ? Symbol[method.slice(8, -1)] : method;
      if (key !== undefined) assert.strictEqual(typeof prototype[key], 'function', `${name}.${method}`);
    }
    const names = new Set(members.map((one) => one.name));
    const missing = Reflect.ownKeys(prototype).filter(isPublic).map(nameOf).filter((key) => !names.has(key));
    assert.deepStrictEqual(missing.filter((key) => !(name === 'LeatError' && key === 'name')
      && !['close', 'wait'].includes(key)), [], name);
    const statics = members.filter((one) => one.isStatic).map((one) => one.name);
    const own = Object.getOwnPropertyNames(leat[name]).filter((key) => typeof leat[name][key] === 'function');
    if (name === 'Topic') assert.deepStrictEqual(own.sort(), statics.sort());
  }
});

test('all of it is documented', () => {
  const lines = types.split('\n');
  const bare = lines.filter((line, index) => /^(export (class|interface|type|const|function)|  (static |readonly )?(\[|\w+\??[(:<]))/.test(line)
    && !/^ {2}(private|protected) /.test(line) && !/^ {2}(timeout|values|options)\S*: /.test(line) && !lines[index - 1].trim().endsWith('*/'));
  assert.deepStrictEqual(bare, []);
});

test('options are those of the types', () => {
  const interfaces = declared('interface');
  const optionsOf = (name) => membersOf(interfaces.get(name).body).map((one) => one.name);
  const place = optionsOf('Place');
  const wait = optionsOf('WaitOptions');
  const expected = {
    topic: [...optionsOf('TopicOptions'), ...place], place, open: [...place, ...wait], publisher: optionsOf('PublisherOptions'),
    subscriber: optionsOf('SubscriberOptions'), group: optionsOf('GroupOptions'), wait, record: optionsOf('NewRecordOptions'),
    recordAsync: [...optionsOf('NewRecordOptions'), ...wait], batch: optionsOf('BatchOptions'),
    batchAsync: [...optionsOf('BatchOptions'), ...wait], newRecord: optionsOf('NewRecord'),
  };
  for (const [call, names] of Object.entries(expected)) assert.deepStrictEqual([...known[call]].sort(), names.sort(), call);
});

test('the addon knows all options that it is given', async () => {
  const { topic } = await pair();
  const refuses = async (call, names) => {
    for (const name of names) {
      const wrong = { [name]: Symbol('wrong') };
      await assert.rejects(async () => call(wrong), (error) => error instanceof TypeError && !/no option/.test(error.message), name);
    }
  };
  await refuses((options) => leat.Topic.create('x', options), known.topic);
  await refuses((options) => leat.Topic.delete('x', options), known.deletion);
  await refuses((options) => topic.publisher(options), known.publisher);
  await refuses((options) => topic.subscriber(options), known.subscriber);
  await refuses((options) => topic.group('g', options), known.group);
  await refuses((options) => topic.deleteGroup('g', options), known.groupDeletion);
  const group = await topic.group('g');
  await refuses((options) => group.join(options), known.member);
});

test('unknown options are refused everywhere, in one line', async () => {
  const { topic, publisher, subscriber } = await pair();
  const group = await topic.group('g', { from: 'beginning' });
  const member = await group.join();
  publisher.publish('x');
  const delivery = await member.receive({ timeout: 5000 });
  const wrong = { timeuot: 10 };
  const calls = {
    create: () => leat.Topic.create('y', wrong), openOrCreate: () => leat.Topic.openOrCreate('y', wrong),
    open: () => leat.Topic.open('y', wrong), delete: () => leat.Topic.delete('y', wrong), list: () => leat.Topic.list(wrong),
    repair: () => topic.repair(wrong), publisher: () => topic.publisher(wrong), subscriber: () => topic.subscriber(wrong),
    group: () => topic.group('h', wrong), deleteGroup: () => topic.deleteGroup('g', wrong), join: () => group.join(wrong),
    seek: () => group.seek({ offset: 0, ...wrong }), from: () => topic.subscriber({ from: { last: 1, ...wrong } }),
    publish: () => publisher.publish('x', wrong), publishAsync: () => publisher.publishAsync('x', wrong),
    publishBatch: () => publisher.publishBatch(['x'], wrong), publishBatchAsync: () => publisher.publishBatchAsync(['x'], wrong),
    recordOfBatch: () => publisher.publishBatch([{ value: 'x', ...wrong }]), flush: () => publisher.flush(wrong),
    receive: () => subscriber.receive(wrong), receiveBatch: () => subscriber.receiveBatch(wrong),
    wait: () => subscriber.wait(wrong), entries: () => subscriber.entries(wrong), waitAny: () => leat.waitAny([subscriber], wrong),
    requeue: () => member.requeue(delivery, wrong),
  };
  for (const [name, call] of Object.entries(calls)) {
    await assert.rejects(async () => call(), (error) => {
      assert.ok(error instanceof TypeError, `${name}: ${error}`);
      assert.strictEqual(error.code, 'ERR_INVALID_ARG_VALUE');
      assert.match(error.message, /^there is no option 'timeuot'( \(did you mean '\w+'\?\))?: the options are \w+[^\n]*$/, name);
      return true;
    }, name);
  }
  await assert.rejects(subscriber.receive(wrong), { message: /'timeuot' \(did you mean 'timeout'\?\): the options are timeout, signal$/ });
  assert.throws(() => publisher.publish('x', { kee: 'k' }), { message: /'kee' \(did you mean 'key'\?\)/ });
  assert.throws(() => publisher.publish('x', { compression: 'k' }), { message: /'compression': the options are key, headers, partition$/ });
  assert.throws(() => topic.subscriber({ from: { offset: 0, last: 1 } }), { message: /only one of offset, last and time/ });
  assert.strictEqual(publisher.lastOffset, null);
  assert.deepStrictEqual(subscriber.poll().map(String).length, 1);  // Nothing of that was published.
  // What was received may be published again.
  const [record] = topic.subscriber({ from: 'beginning' }).poll();
  publisher.publishBatch([record]);
  assert.strictEqual(subscriber.poll()[0].value.toString(), 'x');
});

test('errors name the thing and the cause', async () => {
  const { topic } = await pair();
  const nowhere = '/nonexistent/leat';
  const says = async (call, name, wanted) => assert.rejects(async () => call(), (error) => code(name)(error) && wanted.test(error.message)
    || assert.fail(error.message));
  await says(() => leat.Topic.create('orders', { directory: nowhere }), 'not_found',
    /^cannot create topic 'orders': the directory \/nonexistent\/leat does not exist and cannot be made; LEAT_DIR or/);
  await says(() => leat.Topic.create('orders', { durable: 'os', dataDirectory: '/proc/nonexistent' }), 'not_found',
    /the directory \/proc\/nonexistent does not exist and cannot be made; LEAT_DATA_DIR or/);
  await says(() => leat.Topic.create('my orders'), 'invalid_argument', /topic 'my orders': a name is 1 to 200 letters/);
  await says(() => leat.Topic.create('orders', { partitions: 0 }), 'invalid_argument', /partitions is 0, and must be 1 to 1024/);
  await says(() => leat.Topic.create('orders', { maxCapacityBytes: 2 ** 30 }), 'invalid_argument', /options contradict each other/);
  await says(() => leat.Topic.open('lightq://u@h/t'), 'unsupported', /^cannot open topic 'lightq:.*': that is the address of a broker/);
  await says(() => leat.Topic.open('missing'), 'not_found', new RegExp(`'missing': there is no such topic in ${directory}$`));
  await says(() => leat.Topic.delete('missing'), 'not_found', /^cannot delete topic 'missing'/);
  await says(() => topic.group('workers', { members: 300 }), 'invalid_argument', /group 'workers': members is 300, and must be 1 to 255/);
  await says(async () => (await topic.group('workers')).join({ name: 'x'.repeat(64) }), 'invalid_argument',
    /^name of a member has 64 bytes, and at most 63 are allowed$/);
  await says(() => topic.findGroup('missing'), 'not_found', /^cannot find group 'missing': no such topic or group$/);
  await says(() => topic.deleteGroup('missing'), 'not_found', /^cannot delete group 'missing'/);
  await says(() => topic.publisher({ partition: 7 }), 'invalid_argument', /^partition 7 does not exist: the topic has 1$/);
  await says(() => topic.subscriber({ partition: 7 }), 'invalid_argument', /^partition 7 does not exist: the topic has 1$/);
  await says(() => leat.waitAny([]), 'invalid_argument', /^waitAny\(\) got 0 subscribers/);
});

test('stop() ends waits although resume() follows in the same step', async (t) => {
  const { topic, publisher, subscriber } = await pair(small);
  const member = await (await topic.group('g')).join();
  const [one, other] = [topic.subscriber(), topic.subscriber()];
  t.after(() => [publisher, subscriber, member, one, other].forEach((handle) => handle.close()));
  const waits = [subscriber.receive(), member.receive(), leat.waitAny([one, other])];
  const ends = waits.map((wait) => assert.rejects(wait, code('stopped')));
  const looping = topic.subscriber();
  t.after(() => looping.close());
  const loop = (async () => { for await (const entry of looping) assert.fail(String(entry)); })();
  for (const handle of [subscriber, member, other, looping]) {
    handle.stop();
    handle.resume();
  }
  await Promise.all([...ends, loop]);
  for (const handle of [looping, one, other]) handle.close();
  // Those that wait for their turn, too.
  while (await publisher.publishAsync(Buffer.alloc(1000), { timeout: 0 }).then(() => true, () => false));
  const queued = [publisher.publishAsync('a'), publisher.publishAsync('b')].map((one) => assert.rejects(one, code('stopped')));
  publisher.stop();
  publisher.resume();
  await Promise.all(queued);
  // What begins later waits.
  const later = subscriber.receive();
  assert.ok(!(await later).isGap);
});
