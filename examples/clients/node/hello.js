// Publishes a record and reads it: npm install leat-0.1.0.tgz && node hello.js. Beside it: leat sub greetings
const { Topic } = require('leat');

(async () => {
  const topic = await Topic.openOrCreate('greetings');
  const subscriber = topic.subscriber();
  await topic.publisher().publishAsync('hello from Node');
  for await (const record of subscriber) {
    console.log(record.value.toString());
    break;
  }
})();
