// An API on Express whose limits are in a file, with the admin page under /limits, and clients that keep it busy.
//   npm start -w examples/admin                          one process; with REDIS_URL, several processes share limits and page
//   ROLE=fleet npm start -w examples/admin               two processes, whose Redis freezes now and then, watched by Prometheus
import { fileURLToPath } from 'node:url'
import { limitedApi } from './api.ts'
import { startTraffic } from './traffic.ts'

const { env } = process
if (env.ROLE === 'fleet') {
  const { runFleet } = await import('./fleet.ts')
  await runFleet()
} else await serve()

async function serve(): Promise<void> {
  const { HOST = '127.0.0.1', PORT = '3000', REDIS_URL } = env
  const file = env.POLICIES ?? fileURLToPath(new URL('sluice.yaml', import.meta.url))
  const app = await limitedApi(file, REDIS_URL)
  const server = app.listen(Number(PORT), HOST, () => {
    const address = server.address()
    const port = typeof address === 'object' ? address?.port : address
    console.log(`Open http://localhost:${port}/limits/, or edit ${file}`)
    // To the process that started this one as an instance of a fleet.
    process.send?.('listening')
    if (env.TRAFFIC !== 'off') startTraffic([`http://127.0.0.1:${port}`])
  })
}
