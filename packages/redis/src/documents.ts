import type { Documents } from '@sluice/core'
import type { RedisClient } from './clients/redis-client.ts'
import { hashTags } from './cluster/hash-tags.ts'
import { readLua } from './read-lua.ts'

const writeScript = readLua('write-document')

/**
 * Documents in Redis: each has keys of one hash tag, so that a change and its record are one step
 * on a Cluster too.
 */
export function redisDocuments(redis: RedisClient, prefix: string): Documents {
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

    async write(name, { revision, text, record, keep }) {
      const keys = [at(name, 'revision'), at(name, 'text'), at(name, 'log')] as const
      const rest = [String(revision), text, record, String(keep)]
      return Number(await redis.send('eval', [writeScript, '3', ...keys, ...rest], keys[0])) === 1
    },

    async log(name) {
      const key = at(name, 'log')
      return listOf(await redis.send('lrange', [key, '0', '-1'], key)).map(textOf)
    },

    async announce(name, { id, text }, ttlMs) {
      const key = at(name, 'members')
      if (ttlMs === 0) await redis.send('hdel', [key, id], key)
      else {
        await Promise.all([
          redis.send('hset', [key, id, `${Date.now() + ttlMs} ${text}`], key),
          redis.send('pexpire', [key, String(2 * ttlMs)], key),
        ])
      }
    },

    async members(name) {
      const key = at(name, 'members')
      const ids = listOf(await redis.send('hkeys', [key], key)).map(textOf)
      if (ids.length === 0) return []
      const values = listOf(await redis.send('hmget', [key, ...ids], key)).map(textOf)
      const members = ids.map((id, index) => {
        const value = values[index] ?? ''
        const space = value.indexOf(' ')
        return { id, expiresMs: Number(value.slice(0, space)), text: value.slice(space + 1) }
      })
      const gone = members.filter(({ expiresMs }) => !(expiresMs > Date.now()))
      if (gone.length > 0) await redis.send('hdel', [key, ...gone.map(({ id }) => id)], key)
      return members
        .filter((member) => !gone.includes(member))
        .map(({ id, text }) => ({ id, text }))
    },
  }
}

function listOf(reply: unknown): readonly unknown[] {
  return Array.isArray(reply) ? reply : []
}

/** Clients give texts, or bytes. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  return Buffer.isBuffer(value) ? value.toString('utf8') : ''
}
