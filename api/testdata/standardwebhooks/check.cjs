// Reads messages as lines of JSON (secret, headers, body), and says of each whether the library takes it.
const { Webhook } = require('standardwebhooks');

const lines = require('node:fs').readFileSync(0, 'utf8').trim().split('\n');
for (const line of lines) {
  const { secret, headers, body } = JSON.parse(line);
  try {
    console.log('taken ' + new Webhook(secret).verify(body, headers).type);
  } catch (e) {
    console.log('refused ' + e.message);
  }
}
