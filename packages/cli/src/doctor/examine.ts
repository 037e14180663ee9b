import { clock } from './clock.ts'
import { connection } from './connection.ts'
import { type Finding, found } from './finding.ts'
import { keyspace } from './keyspace.ts'
import { latency } from './latency.ts'
import { memory } from './memory.ts'
import { proxy } from './proxy.ts'
import { RedisLink, reasonOf, TimedOut } from './redis-link.ts'
import { decision, scripts } from './scripts.ts'
import { connections, persistence, role, version } from './server.ts'
import { fieldsOf, serverInfo } from './server-info.ts'

export interface ExamineOptions {
  readonly redis: URL
  /** The prefix of the keys, as in `redisStore(client, { prefix })`. */
  readonly prefix: string
  /** An API URL, to test whether it trusts made-up addresses. */
  readonly api: URL | undefined
  /** Time (ms) after which to stop waiting for replies. */
  readonly timeoutMs: number
}

/** Runs all checks on a Redis server. Never rejects because of the server. */
export async function examine(options: ExamineOptions): Promise<readonly Finding[]> {
  const link = new RedisLink(options.redis, performance.now() + options.timeoutMs)
  try {
    const connected = await connection(link)
    const ofServer = connected.severity === 'error' ? [] : await server(link, options)
    return [connected, ...ofServer, await proxy(options.api)]
  } finally {
    link.client.disconnect()
  }
}

async function server(link: RedisLink, { prefix }: ExamineOptions): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  /** True once the server has stopped answering: then further checks are pointless. */
  let isSilent = false
  const look = async (check: string, ask: () => Promise<Finding | readonly Finding[]>) => {
    if (isSilent) return
    try {
      findings.push(...[await ask()].flat())
    } catch (error) {
      if (error instanceof TimedOut || link.client.status !== 'ready') {
        isSilent = true
        findings.push(silent(check, error, link))
      } else findings.push(found(check).note(`could not be checked: ${reasonOf(error)}`))
    }
  }
  let isCluster = false
  await look('server', async () => {
    const info = await serverInfo(link)
    if (typeof info === 'string') return [untold(info)]
    isCluster = info.text('cluster_enabled') === '1' || info.text('redis_mode') === 'cluster'
    const ofCluster = isCluster ? [await cluster(link)] : []
    const ofInfo = [version(info), role(info), persistence(info), connections(info)]
    return [...ofInfo, ...ofCluster, ...(await memory(link, info))]
  })
  await look('clock', () => clock(link))
  await look('scripts', () => scripts(link, prefix))
  const mayDecide = !findings.some(
    ({ check, severity }) => severity === 'error' && (check === 'scripts' || check === 'role'),
  )
  if (mayDecide) await look('decision', () => decision(link, { prefix, isCluster }))
  await look('latency', () => latency(link))
  await look('keys', () => keyspace(link, prefix))
  return findings
}

function untold(reason: string): Finding {
  return found('server').note(
    `INFO is forbidden: ${reason}; version, role, persistence, memory and eviction were not checked`,
    'run the doctor as a user that may run INFO (ACL SETUSER … +info)',
  )
}

function silent(check: string, error: unknown, link: RedisLink): Finding {
  const why = link.lastError ?? error
  return found(check).error(
    `the server stopped answering: ${reasonOf(why)}; further checks were skipped`,
    'check whether it is stopped, swapping, or running a slow command (redis-cli SLOWLOG GET)',
  )
}

async function cluster(link: RedisLink): Promise<Finding> {
  const check = found('cluster')
  const fields = fieldsOf(await link.ask('CLUSTER', 'INFO'))
  const field = (name: string) => fields.get(name)
  const seen = `a Cluster of ${field('cluster_size')} masters with ${field('cluster_known_nodes')} nodes`
  if (field('cluster_state') === 'ok') {
    return check.ok(`${seen}; use a Cluster client. The memory checks cover only this node`)
  }
  return check.error(
    `${seen}, whose state is ${field('cluster_state')}: ${field('cluster_slots_ok')} of 16384 slots are served`,
    'run redis-cli CLUSTER NODES, restore or replace the missing master, and run redis-cli --cluster fix',
  )
}
