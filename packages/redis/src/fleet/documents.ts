import type { Documents, FleetMember, StoreFleet } from '@sluice/core'
import type { RedisClient } from '../clients/redis-client.ts'
import { listOf, textOf } from '../replies/reply.ts'
import { members as membersScript, writeDocument } from '../scripts/generated/lua.ts'
import type { RunScript } from '../scripts/script-runner.ts'

/** Each process of a fleet reads the reports of all others. */
const maxReportLength = 65_536

interface DocumentsOptions {
  readonly run: RunScript
  /** Returns the caller's time, for a server that forbids TIME in scripts. */
  readonly nowMs: () => number | undefined
  /** Prefix of the keys, with a hash tag: a script changes several of them. */
  readonly prefix: string
}

/** Documents that the processes of a fleet share in Redis. */
export function redisDocuments(
  redis: RedisClient,
  { run, nowMs, prefix }: DocumentsOptions,
): { readonly documents: Documents } & Required<Pick<StoreFleet, 'shareReport'>> {
  const at = (name: string, part: string): string => `${prefix}:document:${name}:${part}`

  /** Publishes a member, if there is one, and returns those that have not expired. */
  async function membersAt(key: string, ...own: string[]): Promise<readonly FleetMember[]> {
    const reply = await run(membersScript, [key], [String(nowMs() ?? ''), ...own])
    const found = listOf(reply).map(textOf)
    return found.flatMap((id, index) =>
      index % 2 === 0 ? [{ id, text: found[index + 1] ?? '' }] : [],
    )
  }

  const documents: Documents = {
    async revision(name) {
      const key = at(name, 'revision')
      return Number((await redis.send('get', [key], key)) ?? 0)
    },

    async read(name) {
      const keys = [at(name, 'revision'), at(name, 'text')] as const
      const [revision, text] = listOf(await redis.send('mget', [...keys], keys[0]))
      if (revision === null || revision === undefined) return undefined
      return { revision: Number(revision), text: textOf(text) }
    },

    async write(name, { revision, text, record, maxKept }, control) {
      const keys = ['revision', 'text', 'log'].map((part) => at(name, part))
      const args = [String(revision), text, record, String(maxKept)]
      return Number(await run(writeDocument, keys, args, control)) === 1
    },

    async log(name) {
      const key = at(name, 'log')
      return listOf(await redis.send('lrange', [key, '0', '-1'], key)).map(textOf)
    },

    async announce(name, { id, text }, ttlMs) {
      await membersAt(at(name, 'members'), id, text, String(ttlMs))
    },

    members: (name) => membersAt(at(name, 'members')),
  }

  return {
    documents,
    async shareReport({ topic, member: id, text, ttlMs }) {
      if (text.length > maxReportLength)
        throw new RangeError(`a report can have at most ${maxReportLength} characters`)
      // The text repeats the id, for processes of earlier versions.
      const all = await membersAt(`${prefix}:${topic}`, id, `${id} ${text}`, String(ttlMs))
      const others = all.filter((member) => member.id !== id)
      return others.map((member) => member.text.slice(member.id.length + 1))
    },
  }
}
