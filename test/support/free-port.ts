import { once } from 'node:events'
import { createServer } from 'node:net'

/** A port of 127.0.0.1 that was free a moment ago; whoever uses it must be ready to lose the race for it. */
export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const address = probe.address()
  probe.close()
  await once(probe, 'close')
  if (address === null || typeof address === 'string') throw new Error('A TCP probe has no port')
  return address.port
}

/**
 * The first of two adjacent ports that are free on every address. They lie below those that systems give out by themselves, so that no
 * connection or server of another test takes one before it is used.
 */
export async function freePortPair(): Promise<number> {
  for (let attempt = 1; attempt <= 50; attempt += 1) {
    const port = 20_000 + 2 * Math.floor(Math.random() * 5_000)
    const free = await Promise.all([canListen(port), canListen(port + 1)])
    if (free.every(Boolean)) return port
  }
  throw new Error('no two adjacent ports from 20000 to 29999 are free')
}

async function canListen(port: number): Promise<boolean> {
  const server = createServer()
  try {
    await once(server.listen(port), 'listening')
    return true
  } catch {
    // Taken, which is an answer.
    return false
  } finally {
    await new Promise((resolve) => server.close(resolve))
  }
}
