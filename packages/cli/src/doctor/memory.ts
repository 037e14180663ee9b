import { bytesText, shareText } from '../report/formats.ts'
import { type Finding, found } from './finding.ts'
import type { RedisLink } from './redis-link.ts'
import { configured, type ServerInfo } from './server-info.ts'

/** Shares of `maxmemory` at which memory is nearly full, and practically full. */
const nearlyFull = 0.8
const full = 0.97

export async function memory(link: RedisLink, info: ServerInfo): Promise<readonly Finding[]> {
  const policy = info.text('maxmemory_policy') ?? (await configured(link, 'maxmemory-policy'))
  const max = info.number('maxmemory')
  return [room(info, max, policy), eviction(info, max, policy)]
}

function room(info: ServerInfo, max: number | undefined, policy: string | undefined): Finding {
  const check = found('memory')
  const used = info.number('used_memory')
  if (used === undefined || max === undefined) return check.note('the server does not report it')
  if (max === 0) {
    return check.warning(
      `${bytesText(used)} are used, and maxmemory is not set: the system kills the server when memory is full`,
      'set maxmemory below the memory of the host',
    )
  }
  const share = used / max
  const seen = `${bytesText(used)} of ${bytesText(max)} are used (${shareText(used, max)})`
  if (share < nearlyFull) return check.ok(seen)
  const fix = 'raise maxmemory, or give Sluice its own Redis'
  const isStopped = share >= full && policy === 'noeviction'
  return isStopped
    ? check.error(`${seen}: checks fail with OOM, and the failure mode decides`, fix)
    : check.warning(seen, fix)
}

function eviction(info: ServerInfo, max: number | undefined, policy: string | undefined): Finding {
  const check = found('eviction')
  if (policy === undefined) return check.note('the server does not report maxmemory-policy')
  const evicted = info.number('evicted_keys') ?? 0
  const fix =
    'give Sluice a Redis with enough memory, and set maxmemory-policy noeviction: then the failure mode decides, and no counts are lost'
  if (evicted > 0 && policy !== 'noeviction') {
    return check.error(
      `maxmemory-policy is ${policy}, and ${evicted} keys were evicted since the start: each count among them was a fresh quota for its client`,
      fix,
    )
  }
  if (policy === 'noeviction') return check.ok('maxmemory-policy is noeviction')
  const when = max === 0 ? 'once maxmemory is set and reached' : 'when memory is full'
  const which = policy.startsWith('volatile')
    ? 'keys with a TTL, which all keys of Sluice are'
    : 'any key'
  return check.warning(
    `maxmemory-policy is ${policy}: ${when}, Redis evicts ${which}, and a client whose count is evicted has a fresh quota`,
    fix,
  )
}
