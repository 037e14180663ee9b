import {
  type Change,
  type Check,
  type CountedKey,
  type DecidingOp,
  type MemoryStore,
  memoryStore,
  type Outcome,
  type Store,
  type StoreOp,
} from '@sluice/core'
import { storeConformance } from '@sluice/testing'
import { describe, expect, it } from 'vitest'
import { mapStore } from '../../examples/store/map-store.ts'
import { storeThrough } from '../support/store-through.ts'
import { runKit } from './run-kit.ts'

storeConformance({ describe, it, open: (clock) => ({ store: mapStore({ clock }) }) })

/** A store with one defect: it changes the calls of a store that is right, or its answers. */
interface Defect {
  apply?(right: MemoryStore, op: DecidingOp, checks: readonly Check[]): ReturnType<Store['apply']>
  change?(right: MemoryStore, change: Change): readonly boolean[]
}

const changed = (change: (outcome: Outcome) => Partial<Outcome>): Defect => ({
  apply: (right, op, checks) =>
    right
      .apply(op, checks)
      .map((outcome) => (op === 'consume' ? { ...outcome, ...change(outcome) } : outcome)),
})

const without = (...ops: StoreOp[]): Defect => ({
  apply: (right, op, checks) => right.apply(ops.includes(op) ? 'peek' : op, checks),
  change: (right, change) =>
    ops.includes(change.op) ? change.checks.map(() => change.op === 'reset') : right.change(change),
})

/** A store that counts a check under another key, or under another policy. */
const counting = (
  place: (check: CountedKey) => { readonly id?: string; readonly key?: string },
): Defect => {
  const placed = <C extends CountedKey>(check: C): C => {
    const { id = check.policy.id, key = check.key } = place(check)
    return { ...check, key, policy: { ...check.policy, id } }
  }
  return {
    apply: (right, op, checks) => right.apply(op, checks.map(placed)),
    change(right, change) {
      const checks: readonly CountedKey[] = change.checks
      return right.change(Object.assign({ ...change }, { checks: checks.map(placed) }))
    },
  }
}

const defects: Readonly<Record<string, readonly [Defect, message: RegExp]>> = {
  'admits one unit too many': [
    {
      apply(right, op, checks) {
        const more = op === 'consume' ? 1 : 0
        return right.apply(
          op,
          checks.map((check) => ({ ...check, limit: check.limit + more })),
        )
      },
    },
    /outcomes\.0\.limit should be 3, but is 4/,
  ],
  'decides each policy by itself': [
    { apply: (right, op, checks) => checks.flatMap((check) => right.apply(op, [check])) },
    /a denied request takes nothing of any policy: expected \[ 0, 8 \], but got \[ 0, 3 \]/,
  ],
  'loses updates that meet': [
    {
      async apply(right, op, checks) {
        if (op !== 'consume') return right.apply(op, checks)
        const read = right.apply('peek', checks)
        await Promise.resolve()
        return read.every(({ allowed }) => allowed) ? right.apply('charge', checks) : read
      },
    },
    /of 200 requests at once, as many as the limit are admitted: expected 37, but got 200/,
  ],
  'takes units for a peek': [
    { apply: (right, op, checks) => right.apply(op === 'peek' ? 'consume' : op, checks) },
    /a peek changes nothing: outcomes\.0\.remaining should be 1/,
  ],
  'tells a wait that is a millisecond short': [
    changed(({ retryAfterMs }) => ({ retryAfterMs: Math.max(0, retryAfterMs - 1) })),
    /after retryAfterMs it is admitted: expected true, but got false/,
  ],
  'gives nothing back': [
    without('refund'),
    /refund returns true if it gave units back: expected true, but got false/,
  ],
  'gives back twice': [
    {
      change: (right, change) =>
        right.change(change.op === 'refund' ? { op: 'reset', checks: change.checks } : change),
    },
    /two units came back: expected \[ 2 \], but got \[ 3 \]/,
  ],
  'forgets nothing': [without('reset'), /a reset key has its whole limit/],
  'does not count charges': [without('charge'), /a charge above the limit leaves 0/],
  'tells negative remaining': [
    changed(({ remaining }) => ({ remaining: (remaining ?? 0) - 1 })),
    /remaining should be 2, but is 1/,
  ],
  'mixes keys up': [
    counting(({ key }) => ({ key: key.split(':')[0] || 'x' })),
    /the key "a" has its own count/,
  ],
  'joins policy and key by a colon': [
    counting(({ policy, key }) => ({ id: '', key: `${policy.name}:${key}` })),
    /the key 'c' of the policy 'a:b' has its own count/,
  ],
  'cuts names of policies at 255 characters': [
    counting(({ policy }) => ({ id: policy.name.slice(0, 255) })),
    /the key 'k' of the policy 'p+b' has its own count/,
  ],
  'lower-cases keys': [
    counting(({ key }) => ({ key: key.toLowerCase() })),
    /the key "A" has its own count/,
  ],
  'lower-cases names of policies': [
    counting(({ policy }) => ({ id: policy.id.toLowerCase() })),
    /the key 'k' of the policy 'login' has its own count/,
  ],
  'normalises keys': [
    counting(({ key }) => ({ key: key.normalize('NFC') })),
    /the key "e\u0301" has its own count/,
  ],
  'folds ligatures': [
    counting(({ key }) => ({ key: key.replace('\ufb01', 'fi') })),
    /the key "fi" has its own count/,
  ],
  'trims keys': [counting(({ key }) => ({ key: key.trim() })), /the key "a " has its own count/],
  'lets no lease end': [without('release'), /release returns true for a running lease/],
  'goes by the clock of the machine': [
    {
      apply(right, op, checks) {
        const stopped = Date.now
        try {
          const hours = Math.floor(performance.timeOrigin)
          Date.now = () => hours
          return right.apply(op, checks)
        } finally {
          Date.now = stopped
        }
      },
    },
    /after retryAfterMs it is admitted/,
  ],
}

describe('the kit for stores', () => {
  it.each(Object.entries(defects))('catches a store that %s', async (_, [defect, message]) => {
    const open = (): { store: Store } => {
      const right = memoryStore()
      const { apply, change } = defect
      return {
        store: {
          apply: (op, checks) => (apply ? apply(right, op, checks) : right.apply(op, checks)),
          change: (wanted) => (change ? change(right, wanted) : right.change(wanted)),
        },
      }
    }
    const { tests, messages } = await runKit(
      (runner) => storeConformance({ ...runner, open }),
      message,
    )
    expect(tests).toBeGreaterThan(120)
    expect(messages).toContainEqual(expect.stringMatching(message))
  })

  it('closes what it opened, and gives Date.now back, also after a failure', async () => {
    const { now } = Date
    let open = 0
    const { tests, messages } = await runKit((runner) =>
      storeConformance({
        ...runner,
        open() {
          open += 1
          const store = storeThrough(memoryStore(), () => {
            throw new Error('it is broken')
          })
          const close = () => {
            open -= 1
          }
          return { store, close }
        },
      }),
    )
    expect(messages.length).toBe(tests)
    expect(new Set(messages)).toEqual(new Set(['the store failed: it is broken']))
    expect(open).toBe(0)
    expect(Date.now).toBe(now)
  })

  it('requires a test runner, and names unknown options', () => {
    const open = () => ({ store: memoryStore() })
    const message = /storeConformance: describe must be a function of your test runner: describe/
    expect(() => storeConformance({ open })).toThrow(message)
    const options = { describe, it, open, opened: open }
    expect(() => storeConformance(options)).toThrow(/there is no option 'opened'.*'open'/)
  })
})
