import { definePolicy } from '@sluice/core'
import { redisStore } from '@sluice/redis'
import { describe, expect } from 'vitest'
import { it } from '../support/redis-test.ts'
import { modernClients } from './cluster-clients.ts'
import { identitiesOf, slotOfTag } from './tag-identities.ts'

let opened = 0

describe.each(modernClients)('$name on a Cluster', (clusterClient) => {
  it('counts what processes hold while a slot is moved, and no request fails', async ({
    cluster,
  }) => {
    const { client, close } = await clusterClient.connect(cluster.ports)
    opened += 1
    const store = redisStore(client, { prefix: `cluster${opened}`, denialTtlMs: 0 })
    const hot = { name: 'hot', limit: 10, window: '1h', prefetch: '6m' } as const
    const policy = definePolicy(hot, '')
    const tag = opened
    const grant = async (key: string, id: number): Promise<number> => {
      const terms = { id, lifeMs: policy.prefetchMs, divisor: 1, closed: [] }
      const asked = { policy, key, cost: 4, limit: policy.limit, terms }
      const [granted] = (await store.grant?.([asked])) ?? []
      return granted?.units ?? Number.NaN
    }
    const ask = async (key: string): Promise<boolean> => {
      const asked = { policy, key, cost: 1, limit: policy.limit }
      return (await store.apply('consume', [asked]))[0]?.allowed ?? false
    }
    // Some keys have a log, some have grants, some have both, and some have neither.
    const quotas = identitiesOf(tag, 24).map((key, index) => ({ key, index, held: 0, admitted: 0 }))
    for (const quota of quotas) {
      if (quota.index % 2 === 0) quota.held = await grant(quota.key, 2 ** 52 + quota.index)
      if (quota.index % 4 > 1 && (await ask(quota.key))) quota.admitted += 1
    }
    const askAll = async (third: number): Promise<void> => {
      const some = quotas.filter(({ index }) => index % 3 === third)
      await Promise.all(
        some.map(async (quota) => {
          for (let i = 0; i < 12; i += 1) if (await ask(quota.key)) quota.admitted += 1
        }),
      )
    }
    const move = await cluster.beginMove(slotOfTag(tag))
    await askAll(0)
    await move.moveKeys(15)
    await askAll(1)
    // Nothing is granted where the grants of a key may be elsewhere.
    expect(await grant(quotas[5]?.key ?? '', 1)).toBe(0)
    await move.finish()
    await askAll(2)
    for (let third = 0; third < 3; third += 1) await askAll(third)
    expect(quotas.map(({ held }) => held)).toEqual(quotas.map((_, i) => (i % 2 === 0 ? 4 : 0)))
    expect(quotas.map(({ admitted }) => admitted)).toEqual(quotas.map(({ held }) => 10 - held))
    await store.close()
    await close()
  })
})
