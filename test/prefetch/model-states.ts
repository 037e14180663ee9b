import type { Check } from '@sluice/core'
import { algorithmOf, type States } from '@sluice/core/backend'
import { Holding, OwnGrant } from '../../packages/core/src/ledger/holding.ts'

type State = NonNullable<ReturnType<States['get']>>

/** States of a few keys that can be copied, so that a model can go on from any of them. */
export class ModelStates implements States {
  changes = 0
  states: Record<string, State> = {}

  get({ key }: Check): State | undefined {
    return this.states[key]
  }

  begin({ key, policy }: Check): State {
    const state = algorithmOf(policy).create()
    this.states[key] = state
    return state
  }

  delete({ key }: Check): boolean {
    return delete this.states[key]
  }

  incarnationOf(): number {
    return 0
  }

  copy(): ModelStates {
    const copy = new ModelStates()
    copy.states = structuredClone(this.states)
    return copy
  }
}

export type Action<World> = (next: World) => void

/** Goes through all worlds that can be reached from one. Returns their number. */
export function explore<World>(
  first: World,
  copyOf: (world: World) => World,
  actionsOf: (world: World) => readonly Action<World>[],
): number {
  const seen = new Set<string>()
  const waiting = [first]
  for (let world = waiting.pop(); world; world = waiting.pop()) {
    const text = JSON.stringify(world)
    if (seen.has(text)) continue
    seen.add(text)
    for (const action of actionsOf(world)) {
      const next = copyOf(world)
      action(next)
      waiting.push(next)
    }
  }
  return seen.size
}

const noCounts = { taken: 0, spent: 0, returned: 0, lapsed: 0 }

export function newHolding(): Holding {
  return new Holding(noCounts)
}

export function copyOfHolding(holding: Holding): Holding {
  const copies = new Map<OwnGrant, OwnGrant>()
  const copied = (grant: OwnGrant): OwnGrant => {
    const known = copies.get(grant)
    if (known) return known
    const copy = Object.assign(new OwnGrant(grant.id, grant.units, grant.endsAt, noCounts), grant)
    copies.set(grant, copy)
    return copy
  }
  const copy = newHolding()
  copy.open = holding.open.map(copied)
  copy.closed = holding.closed.map(copied)
  copy.pending = holding.pending && {
    ...holding.pending,
    closed: holding.pending.closed.map(copied),
  }
  return copy
}
