import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'

// Runs the first example of the README (example.mjs), and asks it 101 times.

const probe = createServer().listen(0)
await once(probe, 'listening')
const { port } = probe.address()
probe.close()
await once(probe, 'close')
process.env.PORT = String(port)
await import('./example.mjs')

const statuses = []
for (let request = 1; request <= 101; request += 1) {
  statuses.push((await fetch(`http://127.0.0.1:${port}/`)).status)
}
assert.deepEqual(statuses, [...Array(100).fill(200), 429])
process.stdout.write('readme: ok\n', () => process.exit())
