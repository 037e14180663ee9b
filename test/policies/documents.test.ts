import { type Documents, memoryStore } from '@sluice/core'
import { redisStore } from '@sluice/redis'
import { createClient } from 'redis'
import { afterAll, describe, expect, vi } from 'vitest'
import { it } from '../support/redis-test.ts'
import { until } from '../support/until.ts'

const made: Record<string, Documents | undefined> = { memory: memoryStore().documents }
let close: () => void

it.beforeAll(async ({ redis, client, clusterClient }) => {
  const nodeRedis = await createClient({ url: redis.url }).connect()
  close = () => nodeRedis.destroy()
  made.ioredis = redisStore(client, { prefix: 'a' }).documents
  made['node-redis'] = redisStore(nodeRedis, { prefix: 'b' }).documents
  made['a Cluster'] = redisStore(clusterClient).documents
})

afterAll(() => close())

describe.each(['memory', 'ioredis', 'node-redis', 'a Cluster'])('documents in %s', (where) => {
  let documents: Documents

  it.beforeAll(() => {
    const own = made[where]
    if (!own) throw new Error('no documents')
    documents = own
  })

  const untilAlone = (name: string, member: { id: string; text: string }) =>
    until('the others have expired', async () => {
      expect(await documents.members(name)).toEqual([member])
      return true
    })

  it('do not exist at first', async () => {
    expect(await documents.revision('none')).toBe(0)
    expect(await documents.read('none')).toBeUndefined()
    expect(await documents.log('none')).toEqual([])
    expect(await documents.members('none')).toEqual([])
  })

  it('are replaced by a writer that has seen the last revision, with a record', async () => {
    const write = (revision: number, text: string) =>
      documents.write('d', { revision, text, record: `record of ${text}`, maxKept: 2 })
    expect(await write(0, 'é1')).toBe(true)
    expect(await write(0, 'late')).toBe(false)
    expect(await documents.read('d')).toEqual({ revision: 1, text: 'é1' })
    expect(await Promise.all([write(1, 'one'), write(1, 'other')])).toEqual([true, false])
    expect(await write(2, 'three')).toBe(true)
    expect(await documents.revision('d')).toBe(3)
    expect(await documents.log('d')).toEqual(['record of three', 'record of one'])
  })

  it('list announced processes until they leave or fall silent', async () => {
    await documents.announce('f', { id: 'one', text: 'v1 of one' }, 60_000)
    await documents.announce('f', { id: 'two', text: 'v1' }, 60_000)
    await documents.announce('f', { id: 'one', text: 'v2 of one' }, 60_000)
    await documents.announce('f', { id: 'two', text: '' }, 0)
    // One that tells for a moment, as the last, takes none of the others with it.
    await documents.announce('f', { id: 'gone', text: 'v1' }, 1)
    await untilAlone('f', { id: 'one', text: 'v2 of one' })
  })

  it.skipIf(where === 'memory')('expire by the clock of Redis, not of processes', async () => {
    const hourMs = 3_600_000
    const announceAt = async (id: string, offsetMs: number, ttlMs: number) => {
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + offsetMs })
      await documents.announce('g', { id, text: 'v1' }, ttlMs)
      vi.useRealTimers()
    }
    await announceAt('ahead', hourMs, 1)
    await announceAt('behind', -hourMs, 60_000)
    await untilAlone('g', { id: 'behind', text: 'v1' })
  })
})
