import { freePortPair } from '../support/free-port.ts'
import { startRedisCluster } from '../support/redis-cluster.ts'
import { startRedisSentinel } from '../support/redis-sentinel.ts'
import { type RedisServer, startRedis } from '../support/redis-server.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import type { Connection } from './api-messages.ts'
import type { Fault, Rig, ServerFault } from './fault.ts'
import type { Fleet } from './fleet.ts'
import { startTcpProxy } from './tcp-proxy.ts'

export type RunningRig = Awaited<ReturnType<typeof startRig>>

/** Starts what a fault spoils, with `connections` to it, which the processes of a fleet take in turn. */
export async function startRig(fault: Fault) {
  if (fault.topology === undefined) return startServerRig(fault)
  const attach = (_fleets: readonly Fleet[]) => undefined
  if (fault.topology === 'sentinel') {
    const redis = await startRedisSentinel()
    const ports = redis.sentinels.map(({ port }) => port)
    const connections = [{ kind: 'sentinel', ports, name: redis.name }] as const
    const inflict = async () => fault.inflict(redis)
    return { connections, attach, inflict, [Symbol.asyncDispose]: redis.stop }
  }
  const redis = await startRedisCluster()
  const connections = [{ kind: 'cluster', ports: redis.ports }] as const
  const inflict = async () => fault.inflict(redis)
  return { connections, attach, inflict, [Symbol.asyncDispose]: redis.stop }
}

/**
 * Starts a server, and a proxy before it. Their ports lie below those that the system gives to clients: one that connects to a port where
 * nobody listens could otherwise be given the same, and talk to itself.
 */
async function startServerRig(fault: ServerFault) {
  const folder = temporaryFolder('faults')
  const persistence = ['--appendonly', 'yes', '--appendfsync', 'always', '--dir', folder.path]
  const args = fault.isPersistent ? persistence : []
  const { proxy, server } = await startPair(args)
  let current: RedisServer = server
  let fleets: readonly Fleet[] = []

  const rig: Rig = {
    proxy,
    get server() {
      return current
    },
    async restart() {
      current = await startRedis({ port: current.port, args })
    },
    async stepClock(clock, byMs) {
      const apis = fleets.flatMap((fleet) => fleet.apis)
      await Promise.all(apis.map((api) => api.stepClock(clock, byMs)))
    },
  }

  const ports = fault.splitsFleet ? [server.port, proxy.port] : [proxy.port]
  return {
    connections: ports.map((port): Connection => ({ kind: 'single', ports: [port] })),
    attach(some: readonly Fleet[]) {
      fleets = some
    },
    inflict: async () => fault.inflict(rig),
    async [Symbol.asyncDispose]() {
      await proxy.close()
      await current.stop()
      folder[Symbol.dispose]()
    },
  }
}

const ATTEMPTS = 5

/** Another test may take a port that was free a moment ago. */
async function startPair(args: readonly string[]) {
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePortPair()
    let server: RedisServer | undefined
    try {
      server = await startRedis({ port, args })
      return { server, proxy: await startTcpProxy(port, port + 1) }
    } catch (error) {
      await server?.stop()
      if (attempt === ATTEMPTS) throw error
    }
  }
}
