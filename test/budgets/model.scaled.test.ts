import { definePolicy, type GrantCheck } from '@sluice/core'
import { engine } from '@sluice/core/backend'
import { describe, expect, it } from 'vitest'
import { note } from '../evidence/figures.ts'
import { type Action, explore, ModelStates } from '../prefetch/model-states.ts'
import { scaled } from '../support/scale.ts'

// All that two processes can do with one grant each, which they renew: the decision of the store is the product's own, and the holder
// follows the rules of `reserve/pool.ts`. Messages are late, lost, repeated, and overtake each other.

const lifeMs = 4
const windowMs = 40
const limit = 3
const key = 'k'
const policy = {
  ...definePolicy({ name: 'p', limit, window: '1s', reserve: true }, ''),
  windowMs,
  reserveMs: lifeMs,
}

interface Holder {
  /** Units that may be spent until `endsAt`, of the grant `id`; 0 for none. */
  id: number
  left: number
  freed: number
  endsAt: number
  /** Ids of grants that the store may have made, and that nobody spends. */
  lost: number[]
  /** The call that is under way. */
  pending: { id: number; endsAt: number; isRenewal: boolean } | undefined
}

interface Message {
  readonly holder: number
  readonly terms: GrantCheck['terms']
  readonly cost: number
}

/** How often each thing may still happen on a path. */
const few = { ticks: 2, leaps: 1, calls: 2, spends: 2, direct: 1, losses: 0, crashes: 0 }
type Budget = typeof few

interface World {
  now: number
  nextId: number
  states: ModelStates
  holders: Holder[]
  requests: Message[]
  replies: { readonly holder: number; readonly id: number; readonly units: number }[]
  /** Times of all units that were produced: the witness. */
  produced: number[]
  budget: Budget
}

const newHolder = (): Holder => {
  return { id: 0, left: 0, freed: 0, endsAt: 0, lost: [], pending: undefined }
}

function copyOf({ states, holders, requests, replies, budget, ...world }: World): World {
  return {
    ...world,
    ...{ states: states.copy(), requests: [...requests], replies: [...replies] },
    // What is lost is added to a list; all else is replaced.
    holders: holders.map((holder) => ({ ...holder, lost: [...holder.lost] })),
    budget: { ...budget },
  }
}

function produce(world: World): void {
  world.produced = [...world.produced.filter((atMs) => atMs > world.now - windowMs), world.now]
  if (world.produced.length > limit) throw new Error(`too many: ${JSON.stringify(world)}`)
}

/** Renews the grant of a holder, or reserves two units with a new one. */
function call(world: World, index: number): void {
  const holder = world.holders[index]
  if (!holder) return
  world.budget.calls -= 1
  const id = world.nextId
  world.nextId += 1
  const isRenewal = holder.id > 0 && holder.endsAt > world.now
  const { left, freed } = holder
  const kept = isRenewal ? [{ id: holder.id, left, freed }] : []
  const closed = holder.lost.map((lost) => ({ id: lost, spent: 0 }))
  holder.pending = { id, endsAt: world.now + lifeMs - 1, isRenewal }
  holder.freed = 0
  const terms = { id, lifeMs, divisor: 1, closed, kept }
  world.requests.push({ holder: index, terms, cost: isRenewal ? 0 : 2 })
}

function arrive(world: World, index: number): void {
  const message = world.requests[index]
  if (!message) return
  const check = { policy, key, cost: message.cost, limit, terms: message.terms }
  const units = engine.grant(world.states, [check], world.now)[0]?.units ?? 0
  world.replies.push({ holder: message.holder, id: message.terms.id, units })
}

function answer(world: World, index: number): void {
  const [reply] = world.replies.splice(index, 1)
  const holder = reply && world.holders[reply.holder]
  if (!holder || holder.pending?.id !== reply.id) return
  const { endsAt, isRenewal } = holder.pending
  holder.pending = undefined
  holder.lost = []
  if (isRenewal) {
    if (holder.endsAt > world.now) holder.endsAt = endsAt
  } else if (reply.units > 0 && endsAt > world.now) {
    Object.assign(holder, { id: reply.id, left: reply.units, freed: 0, endsAt })
  }
}

function actionsOf({ budget, holders, requests, replies, now }: World): Action<World>[] {
  const actions: Action<World>[] = []
  const pass = (ms: number, what: 'ticks' | 'leaps') => (world: World) => {
    world.now += ms
    world.budget[what] -= 1
  }
  if (budget.ticks > 0) actions.push(pass(2, 'ticks'))
  if (budget.leaps > 0) actions.push(pass(windowMs - 2, 'leaps'))
  if (budget.direct > 0) {
    actions.push((world) => {
      world.budget.direct -= 1
      const [outcome] = engine.consume(world.states, [{ policy, key, cost: 1, limit }], world.now)
      if (outcome?.allowed) produce(world)
    })
  }
  for (const [index, { left, endsAt, pending }] of holders.entries()) {
    const changing = (change: (holder: Holder, world: World) => void) => (world: World) => {
      const holder = world.holders[index]
      if (holder) change(holder, world)
    }
    const mayUse = left > 0 && endsAt > now
    if (mayUse && budget.spends > 0) {
      actions.push(
        changing((holder, world) => {
          world.budget.spends -= 1
          holder.left -= 1
          produce(world)
        }),
        // Settled: the rest belongs to nobody.
        changing((holder, world) => {
          world.budget.spends -= 1
          holder.freed += holder.left
          holder.left = 0
        }),
      )
    }
    if (budget.calls > 0 && !pending) actions.push((world) => call(world, index))
    if (pending && budget.losses > 0) {
      // No answer in time.
      actions.push(
        changing((holder, world) => {
          world.budget.losses -= 1
          if (holder.pending) holder.lost.push(holder.pending.id)
          holder.pending = undefined
        }),
      )
    }
    if (budget.crashes > 0 && left > 0) {
      actions.push((world) => {
        world.holders[index] = newHolder()
        world.budget.crashes -= 1
      })
    }
  }
  for (const index of requests.keys()) {
    actions.push((world) => {
      arrive(world, index)
      world.requests.splice(index, 1)
    })
    // A client that is cut off may send a call twice.
    if (budget.losses > 0) {
      actions.push((world) => {
        world.budget.losses -= 1
        arrive(world, index)
      })
    }
  }
  for (const index of replies.keys()) actions.push((world) => answer(world, index))
  return actions
}

function firstWorld(budget: Budget): World {
  return {
    ...{ now: 1_000, nextId: 1, states: new ModelStates(), holders: [newHolder(), newHolder()] },
    ...{ requests: [], replies: [], produced: [], budget },
  }
}

describe('two processes that renew what they have reserved', () => {
  it.for([
    { what: 'and nothing fails', ...few, ticks: scaled(2, 3), spends: 3, direct: 0 },
    { what: 'and a message is lost or comes twice', ...few, ticks: 1, losses: 1 },
    { what: 'and several messages are', ...few, calls: 1, losses: scaled(2, 3) },
    { what: 'beside requests', ...few, direct: scaled(1, 2) },
    { what: 'and crash', ...few, ticks: 1, crashes: 1 },
  ])(
    'never exceed the limit in any window: $what',
    { timeout: 60_000 },
    ({ what: _, ...budget }, { task }) => {
      const worlds = explore(firstWorld(budget), copyOf, actionsOf)
      note(task, { worlds })
      expect(worlds).toBeGreaterThan(500)
    },
  )
})
