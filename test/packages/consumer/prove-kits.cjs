const { once } = require('node:events')
const { memoryStore } = require('@sluice/core')
const { rateLimit } = require('@sluice/express')
const { memoryBroker } = require('@sluice/queue')
const { adapterConformance, brokerConformance, storeConformance } = require('@sluice/testing')
const express = require('express')

/** Describes the tests of all kits, for subjects that pass them, with the functions of a test runner. */
module.exports = function proveKits(runner) {
  storeConformance({ ...runner, open: () => ({ store: memoryStore() }) })
  brokerConformance({ ...runner, open: () => ({ broker: memoryBroker() }) })
  adapterConformance({ ...runner, serve })
}

async function serve({ limits, handle, onError }) {
  const app = express()
  for (const options of limits) app.use(rateLimit(options))
  app.get('/', async (_request, response) => response.status(await handle()).send('hello'))
  app.use((error, _request, response, _next) => {
    onError(error)
    response.status(500).type('text').send(error.message)
  })
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = () => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  }
  return { url: `http://127.0.0.1:${server.address().port}`, close }
}
