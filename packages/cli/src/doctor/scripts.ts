import { randomUUID } from 'node:crypto'
import { definePolicy, errorText, pageUrl } from '@sluice/core'
import { redisStore } from '@sluice/redis'
import { Cluster } from 'ioredis'
import { type Finding, type Findings, found } from './finding.ts'
import { isRefused, type RedisLink, reasonOf, TimedOut } from './redis-link.ts'

/** Everything that the scripts of `@sluice/redis` run, with harmless arguments. */
const inScripts =
  'GET;SET v PX 1000;SETRANGE 0 v;APPEND v;PEXPIRE 1000;PTTL;EXISTS;MGET;DEL;UNLINK;RPUSH v;' +
  'LPUSH v;LSET 0 v;LINDEX 0;LLEN;LTRIM 0 1;LPOP;DEL;HSET f v;HGETALL;HDEL f;DEL;ZADD 1 m;' +
  'ZCARD;ZCOUNT 0 1;ZRANGE 0 0;ZRANGEBYSCORE 0 1;ZSCORE m;ZREM m;DEL;ZREMRANGEBYRANK 0 0;' +
  'ZREMRANGEBYSCORE 0 1'

/** Commands outside of scripts: a fleet's heartbeat, and policies that change. */
const besideScripts =
  'ZADD 1 m;ZREMRANGEBYSCORE -inf 0;ZCARD;PEXPIRE 1000;ZREM m;GET;MGET;LRANGE 0 -1'

/** Runs the commands in turn, and returns the names of the refused ones. */
const probe = `
local refused = {}
for line in string.gmatch(ARGV[1], '[^;]+') do
  local words = {}
  for word in string.gmatch(line, '[^ ]+') do words[#words + 1] = word end
  table.insert(words, 2, KEYS[1])
  local answer = redis.pcall(unpack(words))
  local said = type(answer) == 'table' and answer.err
  if said and (string.find(said, 'NOPERM') or string.find(said, 'run this command') or string.find(said, 'nknown')) then
    refused[#refused + 1] = words[1]
  end
end
return refused`

export async function scripts(link: RedisLink, prefix: string): Promise<readonly Finding[]> {
  const asked = [await evalsha(link, prefix), await timeInScripts(link)]
  if (asked.some(({ severity }) => severity === 'error')) return asked
  return [...asked, await commands(link, prefix)]
}

async function evalsha(link: RedisLink, prefix: string): Promise<Finding> {
  const check = found('scripts')
  const calls = { EVALSHA: '0'.repeat(40), EVAL: 'return 1' }
  for (const [name, script] of Object.entries(calls)) {
    try {
      await link.ask(name, script, 0)
    } catch (error) {
      if (error instanceof TimedOut) throw error
      if (!reasonOf(error).startsWith('NOSCRIPT')) return refused(check, name, { error, prefix })
    }
  }
  return check.ok('EVALSHA and EVAL are allowed')
}

async function timeInScripts(link: RedisLink): Promise<Finding> {
  const check = found('TIME in scripts')
  try {
    await link.ask('EVAL', `return redis.call('TIME')`, 0)
    return check.ok('allowed: limits use the clock of Redis')
  } catch (error) {
    if (error instanceof TimedOut) throw error
    return check.error(
      `refused: ${reasonOf(error)}`,
      `allow the user to run TIME (ACL SETUSER … +time), or use redisStore(client, { clock: 'client' })`,
    )
  }
}

async function commands(link: RedisLink, prefix: string): Promise<Finding> {
  const check = found('rights')
  const key = probeKey(prefix)
  const names = new Set<string>()
  try {
    const answer = await link.ask('EVAL', probe, 1, key, inScripts)
    if (Array.isArray(answer)) for (const name of answer) names.add(String(name))
    for (const line of besideScripts.split(';')) {
      const [name = '', ...rest] = line.split(' ')
      await link.ask(name, key, ...rest).catch((error: unknown) => {
        if (error instanceof TimedOut) throw error
        if (isRefused(error)) names.add(name)
      })
    }
  } catch (error) {
    if (error instanceof TimedOut) throw error
    // A Cluster node refuses keys of other nodes: the decision below covers this.
    if (/^MOVED|^CROSSSLOT/.test(reasonOf(error))) return check.ok('not checked on a Cluster')
    return refused(check, `keys with the prefix ${prefix}`, { error, prefix })
  }
  if (names.size === 0) return check.ok(`all commands of the store on ${prefix}:*`)
  const listed = [...names].sort()
  return check.error(
    `the user may not run ${listed.join(', ')} on ${prefix}:*`,
    `ACL SETUSER <user> ~${prefix}:* ${listed.map((name) => `+${name.toLowerCase()}`).join(' ')}`,
  )
}

function refused(
  check: Findings,
  what: string,
  { error, prefix }: { readonly error: unknown; readonly prefix: string },
): Finding {
  const reason = reasonOf(error)
  const isMemory = /\bOOM\b/.test(reason)
  return check.error(
    `${what}: ${reason}`,
    isMemory
      ? 'raise maxmemory, or give Sluice its own Redis'
      : `allow the user to run scripts on keys with the prefix: ACL SETUSER <user> ~${prefix}:* +@all; a managed server may need a plan that allows Lua`,
  )
}

function probeKey(prefix: string): string {
  const id = randomUUID()
  return `${prefix}:{doctor-${id}}:probe`
}

/** Makes Sluice's store decide: the same code as in production, with its own key. */
export async function decision(
  link: RedisLink,
  { prefix, isCluster }: { readonly prefix: string; readonly isCluster: boolean },
): Promise<Finding> {
  const check = found('decision')
  const client = isCluster ? clusterOf(link) : link.client
  const store = redisStore(client, { prefix, heartbeatMs: 0 })
  const policy = definePolicy({ name: 'sluice-doctor', limit: 1, window: '10s' }, '')
  const checks = [{ policy, key: randomUUID(), cost: 1, limit: 1 }]
  try {
    const ask = () => link.inTime('a decision', store.apply('consume', checks))
    const [first] = await ask()
    const [second] = await ask()
    const isRight = first?.allowed === true && second?.allowed === false
    if (isRight) return check.ok('a limit of 1 admitted one request, and denied the next')
    // The window may have passed meanwhile, on a slow server.
    return check.note('a limit of 1 in 10 s was not reached: the server is slow')
  } catch (error) {
    if (error instanceof TimedOut) throw error
    const [seen = '', ...fix] = errorText(error).split('; ')
    return check.error(seen, fix.length > 0 ? fix.join('; ') : `see ${pageUrl('errors')}`)
  } finally {
    if (client instanceof Cluster) client.disconnect()
  }
}

function clusterOf({ client }: RedisLink): Cluster {
  const { host = '127.0.0.1', port = 6379, username, password, tls } = client.options
  const cluster = new Cluster([{ host, port }], {
    clusterRetryStrategy: () => null,
    redisOptions: {
      ...(username !== undefined && { username }),
      ...(password !== undefined && { password }),
      ...(tls && { tls }),
    },
  })
  cluster.on('error', () => undefined)
  return cluster
}
