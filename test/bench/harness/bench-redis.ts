import { Redis } from 'ioredis'
import { startRedis } from '../../support/redis-server.ts'
import type { Bench } from './bench.ts'

export interface BenchRedis {
  readonly port: number
  readonly pid: number
  /** For metering and preparing; no subject uses it. */
  readonly control: Redis
  /** A client as users get it: default settings, one connection. */
  connect(): Promise<Redis>
  stop(): Promise<void>
}

export async function startBenchRedis({ cleanups, report }: Bench): Promise<BenchRedis> {
  const server = await startRedis()
  const clients: Redis[] = []

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
