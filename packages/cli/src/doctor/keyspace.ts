import { onOneLine } from '@sluice/core'
import { bytesText } from '../report/formats.ts'
import { type Finding, found } from './finding.ts'
import { isRefused, type RedisLink, reasonOf } from './redis-link.ts'

const maxRounds = 50
const maxKeys = 20_000
const sampled = 100
/** Size (bytes) above which a key slows the server down. */
const bigBytes = 4 * 1_024 * 1_024

export async function keyspace(link: RedisLink, prefix: string): Promise<Finding> {
  const check = found('keys')
  const keys = new Set<string>()
  let cursor = '0'
  let rounds = 0
  try {
    do {
      const answer = await link.ask('SCAN', cursor, 'MATCH', `${prefix}:*`, 'COUNT', 1_000)
      if (!Array.isArray(answer)) break
      const [next, page]: unknown[] = answer
      if (Array.isArray(page)) for (const key of page) keys.add(String(key))
      cursor = String(next)
      rounds += 1
    } while (cursor !== '0' && rounds < maxRounds && keys.size < maxKeys)
  } catch (error) {
    if (!isRefused(error)) throw error
    return check.note(
      `SCAN is forbidden: ${reasonOf(error)}; bulk unlock needs it`,
      'allow the user to run SCAN (ACL SETUSER … +scan)',
    )
  }
  const all = cursor === '0' ? '' : 'at least '
  const seen = `${all}${keys.size} keys of ${prefix}:* on this server`
  const some = [...keys].filter((key) => !isDocument(key)).slice(0, sampled)
  const ages = await Promise.all(some.map((key) => link.ask('PTTL', key).catch(() => undefined)))
  const immortal = some.filter((_, index) => ages[index] === -1)
  if (immortal.length > 0) {
    return check.warning(
      `${seen}; ${immortal.length} of ${some.length} never expire, such as ${onOneLine(immortal[0] ?? '').slice(0, 80)}`,
      `find out what else writes keys with this prefix, or use another prefix in redisStore: all of Sluice's keys expire`,
    )
  }
  const sizes = await Promise.all(
    some.map((key) => link.ask('MEMORY', 'USAGE', key).catch(() => 0)),
  )
  const largest = Math.max(0, ...sizes.map(Number).filter(Number.isFinite))
  const sizeText =
    some.length > 0 && largest > 0
      ? `; the largest of ${some.length} has ${bytesText(largest)}`
      : ''
  if (largest < bigBytes) return check.ok(`${seen}${sizeText}`)
  return check.warning(
    `${seen}${sizeText}`,
    'set a resolution, or the algorithm sliding-counter, for the policy with the largest limit',
  )
}

/** Returns whether a key holds policies or their history, which do not expire. */
function isDocument(key: string): boolean {
  return key.includes('}:document:')
}
