import { algorithmNames, definePolicy } from '@sluice/core'
import { engine, stateKey, WorkingSet } from '@sluice/core/backend'
import { expect, it, vi } from 'vitest'
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

it('a text of two grants that was cut counts as empty', () => {
  const policy = definePolicy({ name: 'p', limit: 9, window: '1m', prefetch: '6s' }, '')
  const check = checkOf(policy)
  const key = stateKey(check)
  const written = new WorkingSet(new Map())
  engine.consume(written, [check], start)
  for (const id of [1, 2]) {
    const terms = { id, lifeMs: 6_000, divisor: 1, closed: [] }
    engine.grant(written, [{ ...check, cost: id, terms }], start)
  }
  const numbers = written.changed(start)[0]?.text?.split(' ') ?? []
  for (let kept = 0; kept <= numbers.length; kept += 1) {
    const states = new WorkingSet(new Map([[key, numbers.slice(0, kept).join(' ')]]))
    const [outcome] = engine.peek(states, [check], start)
    expect(outcome?.remaining, `${kept}`).toBe(kept === numbers.length ? 5 : 9)
  }
  // The number of grants, which nothing follows.
  const endless = [...numbers.slice(0, 3), Number.MAX_SAFE_INTEGER].join(' ')
  const states = new WorkingSet(new Map([[key, endless]]))
  expect(engine.peek(states, [check], start)).toMatchObject([{ remaining: 9 }])
})

it.each(['', '2 7 5 60000 1', '1 7', '1 7 5 x 1', '1 7 5 0.5 1', '1 7 5 9007199254740993 1'])(
  "what is no state of a window counts as empty, is told of by its policy, and replaced: '%s'",
  (text) => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined)
    const name = `p of ${text}`
    const check = checkOf(policyOf({ name, limit: 5, window: '1m', algorithm: 'fixed-window' }))
    const key = stateKey(check)
    const states = new WorkingSet(new Map([[key, text]]))
    expect(engine.peek(states, [check], start)).toMatchObject([{ remaining: 5 }])
    expect(warn.mock.calls).toEqual([[expect.stringContaining(`'${name}' cannot be read`)]])
    warn.mockRestore()
    expect(states.changed(start)).toEqual([{ key, text: undefined, endsAt: 0 }])
  },
)

it('states are written when they differ, and deleted once they have ended', () => {
  const check = checkOf(policyOf({ name: 'p', limit: 5, window: '1m', algorithm: 'fixed-window' }))
  const key = stateKey(check)
  const first = new WorkingSet(new Map())
  engine.peek(first, [check], start)
  expect(first.changed(start)).toEqual([])
  engine.consume(first, [check], start)
  const [{ text = '', endsAt = 0 } = {}] = first.changed(start)
  const changesAt = (now: number) => {
    const states = new WorkingSet(new Map([[key, text]]))
    engine.peek(states, [check], now)
    return states.changed(now)
  }
  expect(changesAt(start)).toEqual([])
  expect(changesAt(endsAt - 1)).toEqual([])
  expect(changesAt(endsAt)).toEqual([{ key, text: undefined, endsAt }])
})
