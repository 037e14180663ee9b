const { bullmqBroker, createQueue } = require('@sluice/queue')
const prove = require('./prove.cjs')

test('uses each package', () => prove(async (name) => require(name)))

test('looks for bullmq as CommonJS does', async () => {
  const queue = createQueue({ broker: bullmqBroker({ connection: 'redis://localhost:1' }) })
  await expect(queue.enqueue({ identity: 'ada', payload: null })).rejects.toMatchObject({
    code: 'SLUICE_BROKER_FAILED',
    cause: { code: 'MODULE_NOT_FOUND' },
  })
})
