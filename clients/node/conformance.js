'use strict';
// The driver of the Node client: tests/conformance/README.md says what it reads and prints.
//
// In this order: words and bytes, one method for each command, the loop.

const readline = require('node:readline');
const leat = require('leat');

// ---- Words and bytes ------------------------------------------------------------------------------

function decode(text) {
  const bytes = [];
  for (let i = 0; i < text.length; ++i) {
    if (text[i] === '%') {
      bytes.push(parseInt(text.slice(i + 1, i + 3), 16));
      i += 2;
    } else {
      bytes.push(text.charCodeAt(i));
    }
  }
  return Buffer.from(bytes);
}

function hash(bytes) {
  let high = 0xcbf29ce4;
  let low = 0x84222325;
  for (const byte of bytes) {
    low = (low ^ byte) >>> 0;
    // Times 0x100000001b3, in halves of 32 bits.
    const product = low * 0x1b3;
    high = (Math.imul(high, 0x1b3) + Math.floor(product / 2 ** 32) + (low << 8)) >>> 0;
    low = product >>> 0;
  }
  return high.toString(16).padStart(8, '0') + low.toString(16).padStart(8, '0');
}

function encode(bytes) {
  if (bytes.length > 64) return `${bytes.length}*${hash(bytes)}`;
  let text = '';
  for (const byte of bytes) {
    const character = String.fromCharCode(byte);
    text += /[A-Za-z0-9\-_.,/+]/.test(character) ? character : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return text;
}

function fromOf(text) {
  const [kind, number] = text.split(':');
  return number === undefined ? kind : { [kind]: Number(number) };
}

function timeoutOf(text) {
  return text === 'never' ? Infinity : Number(text);
}

function described(entry, behind = '') {
  if (entry.isGap) {
    return `gap partition=${entry.partition} offset=${entry.offset} count=${entry.count} reason=${entry.reason}`;
  }
  let text = `record partition=${entry.partition} offset=${entry.offset} value=${encode(entry.value)}`;
  if (entry.key !== null) text += ` key=${encode(entry.key)}`;
  for (const [name, value] of entry.headers) text += ` header=${encode(name)}:${encode(value)}`;
  if (entry.timestampMs !== null) text += ` timestamp=${entry.timestampMs}`;
  return text + behind;
}

// The words of a line, and the lines of its answer.
class Command {
  constructor(line) {
    [this.name, ...this.words] = line.split(' ');
    this.handles = this.words.filter((word) => !word.includes('='));
    this.options = this.words.filter((word) => word.includes('=')).map((word) => {
      const at = word.indexOf('=');
      return [word.slice(0, at), word.slice(at + 1)];
    });
    this.lines = [];
  }

  option(name, otherwise) {
    return this.options.find(([key]) => key === name)?.[1] ?? otherwise;
  }

  all(name) {
    return this.options.filter(([key]) => key === name).map(([, value]) => value);
  }

  number(name, otherwise) {
    const text = this.option(name);
    return text === undefined ? otherwise : Number(text);
  }

  flag(name) {
    return this.option(name) === '1';
  }

  isBad() {
    return this.all('value').length !== 0 && this.all('count').length + this.all('prefix').length !== 0;
  }

  timeout(otherwise = '0') {
    return timeoutOf(this.option('timeout', otherwise));
  }

  value() {
    const fill = this.option('fill');
    if (fill === undefined) return decode(this.option('value', ''));
    const [size, byte] = fill.split(':');
    return Buffer.alloc(Number(size), parseInt(byte, 16));
  }
}

// ---- Commands -------------------------------------------------------------------------------------

const handles = new Map();
const claims = new Map();
const deliveries = new Map();  // By the member's name, in the order of their numbers.

const get = (command, index = 0) => handles.get(command.handles[index]);
const keep = (command, handle) => { handles.set(command.handles[0], handle); };
const held = (command, numbers) => numbers.map((number) => deliveries.get(command.handles[0])[Number(number)]);

async function take(command) {
  const subscriber = get(command);
  for (let left = command.number('count', 1); left > 0;) {
    const batch = await subscriber.receiveBatch({ limit: Math.min(left, 64), timeout: command.timeout('10000') });
    for (const entry of batch) {
      command.lines.push(described(entry));
      if (!entry.isGap) --left;
    }
  }
}

const commands = {
  async create(command) {
    keep(command, await leat.Topic.create(command.handles[1], {
      policy: command.option('policy'),
      durable: command.option('durable'),
      capacityBytes: command.number('capacity'),
      segmentBytes: command.number('segment'),
      partitions: command.number('partitions'),
      timestamps: command.flag('timestamps'),
      retainAll: command.flag('retain_all'),
      syncInterval: command.number('sync_interval'),
    }));
  },
  async open(command) {
    keep(command, await leat.Topic.open(command.handles[1], { timeout: command.timeout() }));
  },
  async delete(command) {
    await leat.Topic.delete(command.handles[0], { force: command.flag('force') });
  },
  async info(command) {
    const { partitions } = await get(command).info();
    return `partitions=${partitions.length} end=${partitions.reduce((sum, one) => sum + one.end, 0)}`;
  },
  publisher(command) {
    keep(command, get(command, 1).publisher({
      exclusive: command.flag('exclusive'),
      partition: command.number('partition'),
      acknowledge: command.option('acknowledge'),
    }));
  },
  async publish(command) {
    const key = command.option('key');
    const options = {
      key: key === undefined ? undefined : decode(key),
      headers: command.all('header').map((pair) => pair.split(':').map(decode)),
      partition: command.number('partition'),
    };
    const timeout = command.timeout();
    const offset = timeout === 0
      ? get(command).publish(command.value(), options)
      : await get(command).publishAsync(command.value(), { ...options, timeout });
    return `offset=${offset}`;
  },
  async batch(command) {
    let values = command.all('value').map(decode);
    if (command.option('count') !== undefined) {
      const prefix = decode(command.option('prefix', ''));
      values = Array.from({ length: command.number('count') }, (_, i) => Buffer.concat([prefix, Buffer.from(`${i}`)]));
    }
    const timeout = command.timeout();
    const offset = timeout === 0
      ? get(command).publishBatch(values) : await get(command).publishBatchAsync(values, { timeout });
    return `offset=${offset}`;
  },
  claim(command) {
    const claim = get(command).claim(command.number('size'));
    claims.set(command.handles[0], claim);
    return `offset=${claim.offset}`;
  },
  commit(command) {
    const claim = claims.get(command.handles[0]);
    const value = command.value();
    if (value.length <= claim.data.length) claim.data.set(value);
    claim.commit(value.length);
  },
  abort(command) {
    claims.get(command.handles[0]).abort();
  },
  abandon(command) {
    try {
      get(command).claim(10, (data) => {
        data.write('unfinished');
        throw new RangeError('left by an exception');
      });
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
    }
  },
  async flush(command) {
    await get(command).flush({ timeout: command.timeout('10000') });
  },
  durable_offset(command) {
    return `offset=${get(command).durableOffset()}`;
  },
  subscriber(command) {
    const inPlace = command.flag('in_place');
    keep(command, get(command, 1).subscriber({
      from: fromOf(command.option('from', 'end')),
      inPlace,
      gating: !command.flag('lossy') && !inPlace,
      partition: command.number('partition'),
    }));
  },
  poll(command) {
    for (const entry of get(command).poll(command.number('limit', 64))) command.lines.push(described(entry));
  },
  take,
  view: take,  // Node copies.
  async wait(command) {
    await get(command).wait({ timeout: command.timeout() });
  },
  async wait_any(command) {
    const all = command.handles.map((name) => handles.get(name));
    return `index=${await leat.waitAny(all, { timeout: command.timeout() })}`;
  },
  offset(command) {
    return `offset=${get(command).offset(command.number('partition', 0))}`;
  },
  async group(command) {
    const group = await get(command, 1).group(command.handles[2], {
      from: fromOf(command.option('from', 'end')),
      mode: command.option('mode'),
      byKey: command.flag('by_key'),
      lease: command.number('lease'),
      maxDeliveries: command.number('max_deliveries'),
      inFlight: command.number('in_flight'),
    });
    keep(command, group);
    return `created=${Number(group.wasCreated)}`;
  },
  async find_group(command) {
    keep(command, await get(command, 1).findGroup(command.handles[2]));
  },
  async delete_group(command) {
    await get(command).deleteGroup(command.handles[1], { force: command.flag('force') });
  },
  async group_info(command) {
    const { returned, taking } = await get(command).info();
    return `returned=${returned} taking=${taking}`;
  },
  seek(command) {
    get(command).seek(fromOf(command.option('to')), command.number('partition'));
  },
  position(command) {
    return `offset=${get(command).position(command.number('partition', 0))}`;
  },
  async join(command) {
    deliveries.set(command.handles[0], []);
    keep(command, await get(command, 1).join({ name: command.option('name') }));
  },
  async receive(command) {
    const received = deliveries.get(command.handles[0]);
    const options = { limit: command.number('limit', 1), timeout: command.timeout() };
    for (const entry of await get(command).receiveBatch(options)) {
      if (entry.isGap) {
        command.lines.push(described(entry));
      } else {
        command.lines.push(described(entry, ` delivery=${received.length} deliveries=${entry.deliveries}`));
        received.push(entry);
      }
    }
  },
  acknowledge(command) {
    const some = held(command, command.handles.slice(1));
    return `count=${get(command).acknowledge(some.length === 1 ? some[0] : some)}`;
  },
  acknowledge_up_to(command) {
    return `count=${get(command).acknowledgeUpTo(...held(command, [command.handles[1]]))}`;
  },
  acknowledge_all(command) {
    return `count=${get(command).acknowledgeAll()}`;
  },
  requeue(command) {
    get(command).requeue(...held(command, [command.handles[1]]), { delay: command.number('delay', 0) });
  },
  in_flight(command) {
    return `count=${get(command).inFlight}`;
  },
  stop(command) {
    get(command).stop();
  },
  resume(command) {
    get(command).resume();
  },
  close(command) {
    get(command).close();
  },
  error_names(command) {
    for (const [name, number] of Object.entries(leat.errors)) command.lines.push(`${number} ${name}`);
  },
};

// ---- The loop -------------------------------------------------------------------------------------

async function answer(line) {
  const command = new Command(line);
  if (command.name === 'fork') return 'not_applicable Node cannot fork\n';
  const run = Object.hasOwn(commands, command.name) ? commands[command.name] : undefined;
  if (run === undefined) return 'error unknown_command\n';
  if (command.isBad()) return 'error bad_command\n';
  if (command.option('own_thread') !== undefined) return 'not_applicable every handle may be used by any thread\n';
  try {
    const result = await run(command);
    command.lines.push(result === undefined ? 'ok' : `ok ${result}`);
  } catch (error) {
    if (!(error instanceof leat.LeatError)) throw error;
    command.lines.push(`error ${error.code}`);
  }
  return command.lines.map((text) => `${text}\n`).join('');
}

async function main() {
  let started;
  for await (const line of readline.createInterface({ input: process.stdin })) {
    if (line === 'quit') break;
    if (line.startsWith('start ')) {
      started = answer(line.slice(6));
      process.stdout.write('ok\n');
    } else if (line === 'finish') {
      process.stdout.write(await started);
    } else {
      process.stdout.write(await answer(line));
    }
  }
  process.exit(0);  // Closes nothing.
}

main();
