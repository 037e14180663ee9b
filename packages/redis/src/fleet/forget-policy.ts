import type { ForgetOptions, Forgotten } from '@sluice/core'
import type { RedisClient } from '../clients/redis-client.ts'
import { hashTagOf, hashTags } from '../keys/hash-tags.ts'
import { listOf, textOf } from '../replies/reply.ts'
import type { RunScript } from '../scripts/script-runner.ts'

/** Approximate number of keys per SCAN, and maximum SCANs per call. */
const keysOfScan = 1_000
const maxScans = 20

/** `<place of the node>:<cursor of SCAN>` */
const cursorForm = /^(\d{1,2}):(\d{1,20})$/

/**
 * Forgets keys that match a pattern, scanning about 20,000 keys per call. On a Cluster it visits
 * one node after another; keys of slots that migrate meanwhile may be missed.
 */
export async function forgetKeys(
  redis: RedisClient,
  { run, pattern }: { readonly run: RunScript; readonly pattern: string },
  { cursor, dryRun = false, control }: ForgetOptions,
): Promise<Forgotten> {
  const nodes = await nodesOf(redis)
  const [, first = '0', scanned = '0'] = cursorForm.exec(cursor ?? '') ?? []
  let place = Number(first)
  let scan = scanned
  let keys = 0
  for (let scans = 0; scans < maxScans; scans += 1) {
    const node = nodes[place]
    if (node === undefined) return { keys }
    const args = [scan, 'MATCH', pattern, 'COUNT', String(keysOfScan)]
    const [next, found] = listOf(await redis.send('scan', args, node))
    const names = listOf(found).map(textOf)
    const groups = dryRun ? [] : groupsByTag(names)
    const counts = await Promise.all(groups.map((group) => run(unlinkAll, group, [], control)))
    keys += dryRun ? names.length : counts.reduce((sum: number, one) => sum + Number(one), 0)
    scan = textOf(next)
    if (scan !== '0') continue
    place += 1
    if (place === nodes.length) return { keys }
  }
  return { keys, cursor: `${place}:${scan}` }
}

/** One key per node, so that the client can address the node. */
async function nodesOf(redis: RedisClient): Promise<readonly string[]> {
  const keys = hashTags.map((tag) => `{${tag}}`)
  if (!redis.isCluster) return keys.slice(0, 1)
  const ids = await Promise.all(keys.map((key) => redis.send('cluster', ['myid'], key)))
  return [...new Map(ids.map((id, index) => [textOf(id), keys[index] ?? ''])).values()]
}

const unlinkAll = "return redis.call('UNLINK', unpack(KEYS))"

/** All keys of a command must share a slot. */
function groupsByTag(names: readonly string[]): readonly string[][] {
  const byTag = new Map<string, string[]>()
  for (const name of names) {
    const tag = hashTagOf(name)
    byTag.set(tag, [...(byTag.get(tag) ?? []), name])
  }
  return [...byTag.values()]
}
