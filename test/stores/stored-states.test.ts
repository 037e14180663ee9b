import { algorithmNames } from '@sluice/core'
import { engine, stateKey, WorkingSet } from '@sluice/core/backend'
import { expect, it } from 'vitest'
import { checkOf } from '../support/patient-limiter.ts'
import { algorithmPolicy } from './algorithm-policy.ts'
import { policyOf } from './traces.ts'

const start = 1_795_195_800_000
/** By algorithm: the numbers of a state with one entry, with version and incarnation, and those of each more. All others are whole or nothing. */
const entries: { readonly [algorithm: string]: readonly [least: number, each: number] } = {
  'sliding-log': [6, 2],
  concurrency: [8, 3],
}

it.each(algorithmNames)(
  'a text of %s that was cut in the middle of something counts as empty',
  (name) => {
    const policy = policyOf(algorithmPolicy(name, { name: 'p', limit: 5, window: '1m' }))
    const check = checkOf(policy, { cost: 1 })
    const key = stateKey(check)
    const ask = (stored: Map<string, string>, now: number) => {
      const states = new WorkingSet(stored)
      const [outcome] = engine.consume(states, [check], now)
      for (const { text = '' } of states.changed(now)) stored.set(key, text)
      return outcome?.remaining
    }
    const stored = new Map<string, string>()
    for (let ms = 0; ms < 4; ms += 1) ask(stored, start + ms)
    const numbers = stored.get(key)?.split(' ') ?? []
    const [least, each] = entries[name] ?? [numbers.length, 1]
    for (let kept = 0; kept <= numbers.length; kept += 1) {
      const isWhole = kept >= least && (kept - least) % each === 0
      const cut = new Map([[key, numbers.slice(0, kept).join(' ')]])
      if (isWhole) expect(ask(cut, start + 4), `${kept}`).not.toBe(4)
      else expect(ask(cut, start + 4), `${kept}`).toBe(4)
    }
  },
)
