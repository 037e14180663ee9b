import { type RedisServer, startRedis } from './redis-server.ts'
import { until } from './until.ts'

export type RedisSentinel = Awaited<ReturnType<typeof startRedisSentinel>>

/** What the sentinels call the master. */
const name = 'main'
const quorum = 2

/** Starts a master, a replica and three sentinels that agree on them. */
export async function startRedisSentinel() {
  const started: RedisServer[] = []
  const start = async (...options: Parameters<typeof startRedis>) => {
    const server = await startRedis(...options)
    started.push(server)
    return server
  }
  const stop = async () => void (await Promise.all(started.map((server) => server.stop())))
  try {
    // A replica that joins need not wait for others to share its copy.
    const args = ['--repl-diskless-sync-delay', '0']
    const first = await start({ args })
    const replica = await start({ args: [...args, '--replicaof', '127.0.0.1', `${first.port}`] })
    const nodes = [first, replica]
    // The replica says so a second earlier, when it does not get what is written yet.
    await until('the master has a replica that follows', async () =>
      String(await first.cli('INFO', 'replication')).includes('state=online'),
    )
    const sentinels = await Promise.all([1, 2, 3].map(() => startSentinel(first.port, start)))
    await until('the sentinels know each other and the replica', async () => {
      const known = await Promise.all(sentinels.map((one) => one.cli('SENTINEL', 'MASTER', name)))
      return known.every(
        (fields) =>
          fieldOf(fields, 'num-other-sentinels') === '2' && fieldOf(fields, 'num-slaves') === '1',
      )
    })
    // A sentinel makes a replica again of a master that nobody told it of for four of these periods: a planned
    // failover, at which the sentinel that leads it connects anew, takes longer than four of the short ones.
    await Promise.all(sentinels.map((one) => debugPeriods(one, 'PUBLISH-PERIOD', 500)))
    return {
      name,
      sentinels,
      master: () => masterOf(nodes, sentinels),
      /** Has the replica take over from a master that is well. */
      async failover() {
        // It refuses while it holds the replica to be late, as it may on a busy machine.
        await until('a failover that begins', async () => {
          await sentinels[0]?.cli('SENTINEL', 'FAILOVER', name)
          return true
        })
      },
      untilReplaced: (master: RedisServer) =>
        until('another master', async () => (await masterOf(nodes, sentinels)) !== master),
      untilReplica: (node: RedisServer) =>
        until('the old master is a replica', async () =>
          String(await node.cli('INFO', 'replication')).includes('role:slave'),
        ),
      stop,
      [Symbol.asyncDispose]: stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

async function startSentinel(masterPort: number, start: typeof startRedis): Promise<RedisServer> {
  const config = [
    `sentinel monitor ${name} 127.0.0.1 ${masterPort} ${quorum}`,
    `sentinel down-after-milliseconds ${name} 1000`,
    `sentinel failover-timeout ${name} 5000`,
  ]
  const sentinel = await start({ config: `${config.join('\n')}\n`, args: ['--sentinel'] })
  // From Redis 7 on they can be made to tell each other of themselves sooner than every two seconds.
  await debugPeriods(sentinel, 'INFO-PERIOD', 200, 'PUBLISH-PERIOD', 100)
  return sentinel
}

/** How often a sentinel does what it does; an older Redis does not know how to change that. */
async function debugPeriods(
  sentinel: RedisServer,
  ...periods: readonly (string | number)[]
): Promise<void> {
  await sentinel.cli('SENTINEL', 'DEBUG', ...periods).catch(() => undefined)
}

/** The node that is the master according to most sentinels. */
async function masterOf(
  nodes: readonly RedisServer[],
  sentinels: readonly RedisServer[],
): Promise<RedisServer> {
  const answers = await Promise.all(
    sentinels.map((one) => one.cli('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name)),
  )
  const ports = answers.map((answer) => Number(Array.isArray(answer) ? answer[1] : 0))
  const found = nodes.find(({ port }) => ports.filter((one) => one === port).length >= quorum)
  if (!found) throw new Error('the sentinels do not agree on a master')
  return found
}

function fieldOf(reply: unknown, field: string): unknown {
  const fields: readonly unknown[] = Array.isArray(reply) ? reply : []
  return fields[fields.indexOf(field) + 1]
}
