'use strict';
// Leat for Node: topics in shared memory, which processes publish to and read from directly. README.md

const { native, errors, LeatError } = require('./lib/native');
const { Topic } = require('./lib/topic');
const { Publisher, Claim } = require('./lib/publisher');
const { Subscriber, waitAny } = require('./lib/subscriber');
const { Group, Member } = require('./lib/group');
const { Handle, Stoppable } = require('./lib/handle');
const { Reader, LeatRecord, Delivery, Gap } = require('./lib/reader');

const version = native.version();

module.exports = {
  Handle, Stoppable, Reader, Topic, Publisher, Claim, Subscriber, Group, Member, LeatRecord, Delivery, Gap, LeatError,
  errors, version, waitAny,
};
