import { GlideClusterClient } from '../support/glide.ts'
import { clusterClients as makers, type RedisClient } from '../support/redis-clients.ts'

type Connected = Pick<RedisClient, 'client' | 'close'>

export interface ClusterClient {
  readonly name: string
  /** True if a call may fail while its slot moves: GLIDE gives up after some redirections. */
  readonly failsWhileSlotsMove?: boolean
  connect(ports: readonly number[]): Promise<Connected>
  /** The same, as it is while it connects. GLIDE shows no such client. */
  begin?(ports: readonly number[]): Connected
}

/** Every client of a Cluster that Sluice supports, as its users set it up first. */
export const clusterClients: readonly ClusterClient[] = [
  ...Object.entries(makers).map(([name, make]) => ({
    name,
    begin(ports: readonly number[]) {
      const made = make(ports)
      void made.connect()
      return made
    },
    async connect(ports: readonly number[]) {
      const made = make(ports)
      await made.connect()
      return made
    },
  })),
  {
    name: 'Valkey GLIDE',
    failsWhileSlotsMove: true,
    async connect(ports) {
      const addresses = ports.map((port) => ({ host: '127.0.0.1', port }))
      const client = await GlideClusterClient.createClient({ addresses })
      return { client, close: async () => client.close() }
    },
  },
]

/** The clients that users begin with today. */
export const modernClients: readonly ClusterClient[] = clusterClients.filter(({ name }) =>
  name.endsWith(' 6'),
)
