import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * A port that is free on every address; whoever uses it must be ready to lose the race for it. It lies below those that systems give out
 * by themselves, so that hardly a connection or server of another test takes it before it is used.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 1; attempt <= 50; attempt += 1) {
    const port = 11_000 + Math.floor(Math.random() * 9_000)
    if (await canListen(port)) return port
  }
  throw new Error('no port from 11000 to 19999 is free')
}

/**
 * The first of two adjacent ports that are free on every address, chosen as `freePort` does.
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
