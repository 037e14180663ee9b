import { freePortPair } from '../support/free-port.ts'
import { type RedisServer, startRedis } from '../support/redis-server.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import type { Fault, Rig } from './fault.ts'
import type { Fleet } from './fleet.ts'
import { startTcpProxy } from './tcp-proxy.ts'

export interface RunningRig extends Rig, AsyncDisposable {
  /** Where APIs connect to: the proxy. */
  readonly port: number
  /** The fleets whose clocks can be stepped. */
  attach(fleets: readonly Fleet[]): void
}

/**
 * Starts a server, and a proxy before it. Their ports lie below those that the system gives to clients: one that connects to a port where
 * nobody listens could otherwise be given the same, and talk to itself.
 */
export async function startRig({ isPersistent = false }: Pick<Fault, 'isPersistent'>) {
  const folder = temporaryFolder('faults')
  const persistence = ['--appendonly', 'yes', '--appendfsync', 'always', '--dir', folder.path]
  const args = isPersistent ? persistence : []
  const { proxy, server } = await startPair(args)
  let current: RedisServer = server
  let fleets: readonly Fleet[] = []

  const rig: RunningRig = {
    port: proxy.port,
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
    attach(some) {
      fleets = some
    },
    async [Symbol.asyncDispose]() {
      await proxy.close()
      await current.stop()
      folder[Symbol.dispose]()
    },
  }
  return rig
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
