// Publishes a record and reads the topic back: npm install leat-0.1.0.tgz && node hello.js. Beside it: leat sub greetings
const { Topic } = require('leat');

(async () => {
  const topic = await Topic.openOrCreate('greetings');
  await topic.publisher().publishAsync('hello from Node');
  const subscriber = topic.subscriber({ from: 'beginning' });
  for (let batch; (batch = subscriber.poll()).length > 0;) {
    for (const record of batch) if (!record.isGap) console.log(record.value.toString());
  }
})();
