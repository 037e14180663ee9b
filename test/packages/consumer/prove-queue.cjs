const assert = require('node:assert/strict')

/** Shows that a job is queued, run again when it fails, and done, and that its worker closes. */
module.exports = async function proveQueue({ createQueue, createWorker, memoryBroker }) {
  const broker = memoryBroker()
  const queue = createQueue({ broker, maxDepth: 2 })
  const identity = 'user:42'
  const { id } = await queue.enqueue({ identity, payload: { page: 7 }, idempotencyKey: 'order-1' })
  const again = await queue.enqueue({ identity, payload: { page: 7 }, idempotencyKey: 'order-1' })
  assert.deepEqual([again.outcome, again.id], ['known', id])
  assert.equal((await queue.enqueue({ identity, payload: null })).outcome, 'full')
  const worker = createWorker({
    broker,
    ...{ limit: 5, window: '1s', backoff: { base: 1, max: 1 } },
    handler({ payload, attempt }) {
      if (attempt === 1) throw new Error('not yet')
      return payload.page
    },
  })
  const { state, result, attempts } = await ended(() => queue.status(id, identity))
  assert.deepEqual([state, result, attempts], ['done', 7, 2])
  await worker.close()
  await broker.close()
}

async function ended(status) {
  for (;;) {
    const job = await status()
    if (job.state !== 'pending' && job.state !== 'running') return job
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
