import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

export interface Vendor {
  readonly url: string
  close(): Promise<void>
}

/** A third party with its own quota: calls beyond it get a 429. */
export async function startVendor({
  limit,
  windowMs,
}: {
  limit: number
  windowMs: number
}): Promise<Vendor> {
  let times: number[] = []
  const server = createServer(async (_request, response) => {
    await sleep(Math.random() * 30)
    const now = performance.now()
    times = times.filter((time) => time > now - windowMs)
    times.push(now)
    const isTooMany = times.length > limit
    response.writeHead(isTooMany ? 429 : 200, isTooMany ? { 'retry-after': '2' } : {}).end('{}')
  })
  server.listen(0)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://localhost:${port}`,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
