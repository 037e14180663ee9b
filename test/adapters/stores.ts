import { memoryStore, type Outcome, type Store } from '@sluice/core'
import { storeThrough } from '../support/store-through.ts'

/** A store that is gone, in the two ways in which stores go. */
export function failingStore(how: 'throws' | 'rejects'): Store {
  return storeThrough(memoryStore(), () => {
    const error = new Error('connection refused')
    if (how === 'throws') throw error
    return Promise.reject(error)
  })
}

export type Scripted = Omit<Outcome, 'policy' | 'limit' | 'delayMs' | 'receipt'>

/** A store that answers what it is told to, a list of outcomes for each request. */
export function scriptedStore(outcomes: readonly Scripted[]): Store {
  return {
    ...memoryStore(),
    apply: (_op, checks) =>
      checks.map(({ policy, limit }, index) => {
        const outcome = outcomes[index]
        if (!outcome) throw new Error(`no outcome for check ${index}`)
        return { ...outcome, policy, limit, delayMs: 0, receipt: undefined }
      }),
  }
}
