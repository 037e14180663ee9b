import { type Check, definePolicy, type GrantCheck, type Outcome } from '@sluice/core'
import { engine } from '@sluice/core/backend'
import { describe, expect, it } from 'vitest'
// The rules of the holder are the product's own, and so is the decision of the store: only the network is a model.
import type { Holding } from '../../packages/core/src/ledger/holding.ts'
import { note } from '../evidence/figures.ts'
import { scaled } from '../support/scale.ts'
import { type Action, copyOfHolding, explore, ModelStates, newHolding } from './model-states.ts'

const lifeMs = 4
const tickMs = 2
const windowMs = 40
const limit = 2
type Key = 'a' | 'b'

const policy = {
  ...definePolicy({ name: 'p', limit, window: '100ms', prefetch: '10ms' }, ''),
  windowMs,
  prefetchMs: lifeMs,
}

interface Request {
  readonly holder: number
  readonly key: Key
  readonly terms: GrantCheck['terms']
}

interface Reply {
  readonly holder: number
  readonly key: Key
  readonly id: number
  readonly units: number
}

/** How often each thing may still happen on a path. */
interface Budget {
  ticks: number
  leaps: number
  asks: number
  direct: number
  spends: number
  losses: number
  crashes: number
  resets: number
  /** Grants that are closed early, and requests that are given up. */
  closes: number
}

class World {
  now = 1_000
  nextId = 1
  states: ModelStates = new ModelStates()
  holders: Record<Key, Holding>[] = [newHolder(), newHolder()]
  requests: Request[] = []
  replies: Reply[] = []
  /** Times of all admitted units: the witness. */
  admitted: Record<Key, number[]> = { a: [], b: [] }
  readonly keys: readonly Key[]
  budget: Budget

  constructor(keys: readonly Key[], budget: Budget) {
    this.keys = keys
    this.budget = budget
  }

  copy(): World {
    const copy = new World(this.keys, { ...this.budget })
    copy.now = this.now
    copy.nextId = this.nextId
    copy.states = this.states.copy()
    copy.holders = this.holders.map(({ a, b }) => ({ a: copyOfHolding(a), b: copyOfHolding(b) }))
    copy.requests = [...this.requests]
    copy.replies = [...this.replies]
    copy.admitted = { a: [...this.admitted.a], b: [...this.admitted.b] }
    return copy
  }

  get moment(): { monotonicMs: number; wallMs: number } {
    return { monotonicMs: this.now, wallMs: this.now }
  }

  holding(holder: number, key: Key): Holding {
    const holding = this.holders[holder]?.[key]
    if (!holding) throw new Error('no such holder')
    return holding
  }

  admit(key: Key): void {
    const recent = this.admitted[key].filter((atMs) => atMs > this.now - windowMs)
    this.admitted[key] = [...recent, this.now]
    if (this.admitted[key].length > limit) throw new Error(`too many: ${JSON.stringify(this)}`)
  }

  consume(check: Check): Outcome | undefined {
    return engine.consume(this.states, [check], this.now)[0]
  }
}

function newHolder(): Record<Key, Holding> {
  return { a: newHolding(), b: newHolding() }
}

function actionsOf({ budget, keys, holders, requests, replies, ...world }: World): Action<World>[] {
  const actions: Action<World>[] = []
  if (budget.ticks > 0) actions.push(pass(tickMs, 'ticks'))
  if (budget.leaps > 0) actions.push(pass(windowMs - tickMs, 'leaps'))
  const moment = { monotonicMs: world.now, wallMs: world.now }
  for (const [holder, held] of holders.entries()) {
    for (const key of keys) {
      const holding = held[key]
      if (budget.spends > 0 && holding.find(1, moment)) actions.push(spend(holder, key))
      if (budget.asks > 0 && !holding.pending) actions.push(ask(holder, key))
      if (budget.closes > 0 && (holding.open.length > 0 || holding.pending)) {
        actions.push(close(holder, key))
      }
      if (budget.resets > 0) actions.push(reset(holder, key))
    }
    if (budget.crashes > 0 && (held.a.open.length > 0 || held.a.pending)) {
      actions.push((next) => {
        next.holders[holder] = newHolder()
        next.budget.crashes -= 1
      })
    }
  }
  if (budget.direct > 0) for (const key of keys) actions.push(direct(key))
  for (const index of requests.keys()) {
    actions.push(arrive(index, true))
    if (budget.losses > 0) {
      // A client that is cut off may send a call twice.
      actions.push(arrive(index, false), (next) => {
        next.requests.splice(index, 1)
        next.budget.losses -= 1
      })
    }
  }
  for (const index of replies.keys()) {
    actions.push(answer(index))
    if (budget.losses > 0) {
      actions.push((next) => {
        next.replies.splice(index, 1)
        next.budget.losses -= 1
      })
    }
  }
  return actions
}

function pass(ms: number, what: 'ticks' | 'leaps'): Action<World> {
  return (next) => {
    next.now += ms
    next.budget[what] -= 1
  }
}

function close(holder: number, key: Key): Action<World> {
  return (next) => {
    next.budget.closes -= 1
    const holding = next.holding(holder, key)
    holding.close(() => true)
    if (holding.pending) holding.fail(holding.pending.id)
  }
}

function spend(holder: number, key: Key): Action<World> {
  return (next) => {
    next.budget.spends -= 1
    if (next.holding(holder, key).spend(1, next.moment)) next.admit(key)
  }
}

function direct(key: Key): Action<World> {
  return (next) => {
    next.budget.direct -= 1
    if (next.consume({ policy, key, cost: 1, limit })?.allowed) next.admit(key)
  }
}

function ask(holder: number, key: Key): Action<World> {
  return (next) => {
    next.budget.asks -= 1
    const id = next.nextId
    next.nextId += 1
    const { closed } = next.holding(holder, key).request(id, lifeMs, next.moment)
    const terms = { id, lifeMs, divisor: 1, closed }
    next.requests.push({ holder, key, terms })
  }
}

function arrive(index: number, isLast: boolean): Action<World> {
  return (next) => {
    const request = next.requests[index]
    if (!request) return
    if (isLast) next.requests.splice(index, 1)
    else next.budget.losses -= 1
    const { holder, key, terms } = request
    const check = { policy, key, cost: 2, limit, terms }
    const units = engine.grant(next.states, [check], next.now)[0]?.units ?? 0
    next.replies.push({ holder, key, id: terms.id, units })
  }
}

function answer(index: number): Action<World> {
  return (next) => {
    const [reply] = next.replies.splice(index, 1)
    if (reply) next.holding(reply.holder, reply.key).answer(reply.id, reply.units, next.moment)
  }
}

/** A reset forgets what was admitted, and nothing of what other processes hold. */
function reset(holder: number, key: Key): Action<World> {
  return (next) => {
    next.budget.resets -= 1
    const closed = next.holding(holder, key).forget()
    const checks = [{ policy, key, cost: 1, limit, closed }]
    engine.change(next.states, { op: 'reset', checks }, next.now)
    next.admitted[key] = []
  }
}

const nothing: Budget = {
  ticks: 0,
  leaps: 0,
  asks: 0,
  direct: 0,
  spends: 0,
  losses: 0,
  crashes: 0,
  resets: 0,
  closes: 0,
}

const one: readonly Key[] = ['a']
const few = { keys: one, ticks: scaled(2, 1), leaps: 1, asks: scaled(1, 2), direct: 1, spends: 2 }
const both: readonly Key[] = ['a', 'b']

describe('two processes that hold units', () => {
  it.for([
    { what: 'of two keys', keys: both, ticks: 1, asks: 2, direct: 1, spends: 2 },
    {
      what: 'with lapses',
      keys: one,
      ticks: scaled(2, 3),
      leaps: 1,
      asks: 2,
      direct: 1,
      spends: 3,
    },
    { what: 'that lose messages', ...few, losses: 1 },
    { what: 'that crash', ...few, crashes: 1 },
    { what: 'of a key that is reset', ...few, asks: 1, resets: 1 },
    { what: 'and close early', ...few, closes: 1 },
  ])(
    'admit the limit in no window: $what',
    { timeout: 60_000 },
    ({ what: _, keys, ...budget }, { task }) => {
      const first = new World(keys, { ...nothing, ...budget })
      const worlds = explore(first, (world) => world.copy(), actionsOf)
      note(task, { worlds })
      expect(worlds).toBeGreaterThan(500)
    },
  )
})
