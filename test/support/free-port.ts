import { once } from 'node:events'
import { createServer } from 'node:net'

/**
 * A port that is free on every address; whoever uses it must be ready to lose the race for it. It lies below those that systems give out
 * by themselves, so that hardly a connection or server of another test takes it before it is used.
 */
export function freePort(): Promise<number> {
  return firstOf(1, 11_000)
}

/** The first of two adjacent ports that are free on every address. */
export function freePortPair(): Promise<number> {
  return firstOf(2, 20_000)
}

async function firstOf(count: 1 | 2, lowest: number): Promise<number> {
  for (let attempt = 1; attempt <= 50; attempt += 1) {
    const port = lowest + count * Math.floor(Math.random() * 4_500)
    const free = await Promise.all([canListen(port), count === 1 || canListen(port + 1)])
    if (free.every(Boolean)) return port
  }
  throw new Error(`there are no ${count} free ports in a row from ${lowest} on`)
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
