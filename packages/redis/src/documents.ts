import type { Documents } from '@sluice/core'
import type { RedisClient } from './clients/redis-client.ts'
import { hashTags } from './cluster/hash-tags.ts'
import { readLua } from './read-lua.ts'
import { listOf, textOf } from './replies/texts.ts'
import type { RunScript } from './scripts/script-runner.ts'

const writeScript = readLua('write-document')
const membersScript = readLua('members')

/**
 * Documents in Redis: each has keys of one hash tag, so that a change and its record are one step
 * on a Cluster too.
 */
export function redisDocuments(redis: RedisClient, run: RunScript, prefix: string): Documents {
  const at = (name: string, part: string): string =>
    `${prefix}:{${hashTags[0]}}:document:${name}:${part}`

  return {
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

    async write(name, { revision, text, record, keep }, control) {
      const keys = ['revision', 'text', 'log'].map((part) => at(name, part))
      const args = [String(revision), text, record, String(keep)]
      return Number(await run(writeScript, keys, args, control)) === 1
    },

    async log(name) {
      const key = at(name, 'log')
      return listOf(await redis.send('lrange', [key, '0', '-1'], key)).map(textOf)
    },

    async announce(name, { id, text }, ttlMs) {
      await run(membersScript, [at(name, 'members')], [id, text, String(ttlMs)])
    },

    async members(name) {
      const found = listOf(await run(membersScript, [at(name, 'members')], [])).map(textOf)
      return found.flatMap((id, index) =>
        index % 2 === 0 ? [{ id, text: found[index + 1] ?? '' }] : [],
      )
    },
  }
}
