import type { StoreErrorEvent } from '@sluice/core'
import { expect, it, vi } from 'vitest'
import type { Behaviour } from '../../adapters/adapter-conformance.ts'
import { limitFields } from '../../adapters/ask.ts'
import { failingStore } from '../../adapters/stores.ts'

const ways = ['throws', 'rejects'] as const

/** What observers see of a store that is gone, beside what `adapterConformance` tries. */
export const storeFailures: Behaviour = ({ limited }) => {
  it.each(ways)("H08: 'open' passes without headers when the store %s", async (how) => {
    const onStoreError = vi.fn<(event: StoreErrorEvent) => void>()
    const app = await limited({
      limit: 1,
      window: '1m',
      store: failingStore(how),
      failureMode: 'open',
      exposeHeaders: true,
      observers: { onStoreError },
    })

    const answer = await app.ask()

    expect(answer.status).toBe(200)
    expect(limitFields(answer)).toEqual({})
    expect(await app.statuses(3)).toEqual([200, 200, 200])
    // The fourth did not ask any more: the breaker was open.
    expect(onStoreError).toHaveBeenCalledTimes(3)
    expect(onStoreError.mock.calls[0]?.[0].error.code).toBe('SLUICE_STORE_FAILED')
  })

  it('an observer that throws changes no answer', async () => {
    vi.spyOn(console, 'warn').mockReturnValue()
    const fail = () => {
      throw new Error('observer')
    }
    const app = await limited({
      limit: 1,
      window: '1m',
      store: failingStore('rejects'),
      observers: { onStoreError: fail, onDecision: fail },
    })

    expect(await app.statuses(2)).toEqual([200, 429])
  })
}
