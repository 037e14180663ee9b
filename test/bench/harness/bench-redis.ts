import { Redis } from 'ioredis'
import { startRedis } from '../../support/redis-server.ts'
import type { Bench } from './bench.ts'

export type BenchRedis = Awaited<ReturnType<typeof startBenchRedis>>

/** Starts a server. Its `control` is for metering and preparing, and no subject uses it. */
export async function startBenchRedis({ cleanups, report }: Bench) {
  const server = await startRedis()
  const clients: Redis[] = []

  /** A client as users get it: default settings, one connection. */
  async function connect(): Promise<Redis> {
    const client = new Redis(server.port)
    clients.push(client)
    // A subject that fails says so by its answers; without a listener ioredis prints the same again.
    client.on('error', () => undefined)
    await client.ping()
    return client
  }

  async function stop(): Promise<void> {
    for (const client of clients) client.disconnect()
    await server.stop()
  }

  cleanups.add(stop)
  const control = await connect()
  report.versions['redis-server'] =
    /^redis_version:(\S+)/m.exec(await control.info('server'))?.[1] ?? ''
  return { port: server.port, pid: server.pid, control, connect, stop }
}
