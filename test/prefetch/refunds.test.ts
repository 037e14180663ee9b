import type { CheckLimiter, Decision } from '@sluice/core'
import { describe, expect, it, vi } from 'vitest'
import { beginEach } from '../core/resilience/troubled-store.ts'
import { consume, GrantingStore } from './granting-store.ts'

const policy = { name: 'p', limit: 10_000, window: '10s', prefetch: '500ms' } as const
let store: GrantingStore

beginEach(() => {
  store = new GrantingStore()
})

/** Makes the key hot. Returns decisions that one open grant has answered. */
async function spendSome(limiter: CheckLimiter, units: number): Promise<readonly Decision[]> {
  const { grants } = limiter.storeHealth()
  for (let i = 0; i < 50 && limiter.storeHealth().grants.spent === grants.spent; i += 1) {
    await consume(limiter)
  }
  const decisions: Decision[] = []
  for (let i = 0; i < units; i += 1) decisions.push(await consume(limiter))
  expect(limiter.storeHealth().grants.spent).toBe(grants.spent + 1 + units)
  return decisions
}

describe('a refund of units of a grant', () => {
  it('goes to the store once the store has recorded them', async () => {
    const limiter = store.limiter({ policies: [policy] })
    const [decision] = await spendSome(limiter, 3)
    await vi.advanceTimersByTimeAsync(600)
    expect(decision && (await limiter.refund(decision))).toBe(true)
    expect(store.of('refund')).toHaveLength(1)
  })

  it('is refused for a grant that the store may have recorded before another one', async () => {
    const limiter = store.limiter({ policies: [policy] })
    const decisions = [...(await spendSome(limiter, 3))]
    const spentOfLast = (): number => {
      const { closed = [] } = store.of('grant').at(-1)?.terms ?? {}
      return closed.filter(({ spent }) => spent > 0).length
    }
    for (let i = 0; i < 200 && spentOfLast() < 2; i += 1) {
      if (store.of('grant').length === 2) store.moods.grant = 'loses'
      // That answer is lost, and the next call tells of the same grant and of another one.
      if (spentOfLast() === 1) store.moods.grant = 'answers'
      decisions.push(await consume(limiter))
      await vi.advanceTimersByTimeAsync(2)
    }
    expect(spentOfLast()).toBe(2)
    const [first] = decisions
    expect(first && (await limiter.refund(first))).toBe(false)
    expect(store.of('refund')).toEqual([])
  })

  it('waits for an answer that tells which units were recorded', async () => {
    const limiter = store.limiter({ policies: [policy] })
    const [decision] = await spendSome(limiter, 3)
    store.moods.grant = 'hangs'
    await vi.advanceTimersByTimeAsync(450)
    expect(decision && (await limiter.refund(decision))).toBe(false)
    expect(store.of('refund')).toEqual([])
    await store.release()
    expect(store.of('refund').map(({ cost }) => cost)).toEqual([1])
  })

  it('is done by a limiter whose policies have no prefetch', async () => {
    const limiter = store.limiter({ policies: [policy] })
    const [decision] = await spendSome(limiter, 3)
    const other = store.limiter({ policies: [{ name: 'q', limit: 9, window: '10s' }] })
    expect(decision && (await other.refund(decision))).toBe(true)
    await vi.advanceTimersByTimeAsync(600)
    const { remaining } = (await other.peek('k')).outcomes[0] ?? {}
    expect(remaining).toBe(9)
    expect(store.of('refund')).toEqual([])
  })

  it('goes to the store although another policy was decided without it', async () => {
    const limiter = store.limiter({ policies: [policy, { name: 'q', limit: 900, window: '10s' }] })
    await spendSome(limiter, 3)
    store.mood = 'rejects'
    const decision = await limiter.consume('k')
    expect(decision.source).toBe('fallback')
    store.mood = 'answers'
    await vi.advanceTimersByTimeAsync(600)
    expect(await limiter.refund(decision)).toBe(true)
    expect(store.of('refund').map((check) => check.policy.name)).toContain('p')
  })
})

describe('a request that another policy denies', () => {
  it('gives its unit back to the store when its grant was closed meanwhile', async () => {
    const limiter = store.limiter({ policies: [policy, { name: 'q', limit: 1, window: '10s' }] })
    await spendSome(limiter, 3)
    await limiter.consume('k')
    store.moods.consume = 'hangs'
    const pending = limiter.consume('k')
    await vi.advanceTimersByTimeAsync(450)
    expect(store.of('refund')).toEqual([])
    await store.release()
    expect((await pending).allowed).toBe(false)
    expect(store.of('refund').map(({ cost, policy: { name } }) => [name, cost])).toEqual([['p', 1]])
  })
})

describe('the counters of units', () => {
  it('count units once that two answers tell of', async () => {
    const limiter = store.limiter({ policies: [policy] })
    await spendSome(limiter, 3)
    store.moods.grant = 'hangs'
    await vi.advanceTimersByTimeAsync(450)
    await limiter.reset('k')
    await vi.advanceTimersByTimeAsync(32)
    const told = store
      .of('grant')
      .filter(({ terms }) => terms?.closed.some(({ spent }) => spent > 0))
    expect(told).toHaveLength(2)
    await store.release()
    const { taken, spent, returned } = limiter.storeHealth().grants
    expect(returned).toBe(taken - spent)
  })
})
