import type { Answer } from './answer.ts'
import type { CallInfo } from './call.ts'
import { Gate } from './gate.ts'
import { Holds } from './holds.ts'
import type { Waiting } from './pause.ts'

/** Bounds of what is remembered for one key; the oldest is forgotten first. */
const maxRoutes = 1000
const maxGates = 200

/**
 * The gates of one key, and which of them are on the way of which call. The server does not say that before it has
 * answered: a route that was answered once has the policies of that answer. A new route has those that were seen on
 * several routes, so that a policy of all routes holds all calls, and one of the login holds the login alone.
 */
export class GateKeeper {
  readonly holds: Holds = new Holds()
  readonly #pace: boolean
  readonly #gates = new Map<string, Gate>()
  readonly #routes = new Map<string, ReadonlySet<string>>()
  /** Routes of which nothing is known yet, with the calls that wait for the answer to the first call. */
  readonly #scouted = new Map<string, Waiting>()

  constructor(options: { pace: boolean }) {
    this.#pace = options.pace
  }

  gatesOf(call: CallInfo): Gate[] {
    const route = routeOf(call)
    const own = this.#gates.get(route)
    const names = this.#routes.get(route)
    const gates = names
      ? [...names].flatMap((name) => this.#gates.get(name) ?? [])
      : [...this.#gates.values()].filter(({ routes }) => routes.size > 1)
    return this.holds.with(own === undefined ? gates : [...gates, own])
  }

  /** The gate of the call's route alone, for what no policy was named for. */
  routeGate(call: CallInfo): Gate {
    return this.#gate(routeOf(call), undefined)
  }

  policyGate(name: string): Gate {
    return this.#gate(`policy ${name}`, name)
  }

  /** Notes which policies an answer to the call has named, and what is left of them where it was no refusal that told when. */
  learn(call: CallInfo, { policies, toldMs }: Answer, nowMs: number): void {
    const route = routeOf(call)
    if (policies.length === 0 && this.#routes.has(route)) return
    const ids = new Set(policies.map(({ name }) => `policy ${name}`))
    remember(this.#routes, { id: route, value: ids, max: maxRoutes })
    for (const policy of policies) {
      const gate = this.policyGate(policy.name)
      if (gate.routes.size < 2) gate.routes.add(route)
      gate.measure(policy)
      if (toldMs === undefined) gate.learn(policy, nowMs)
    }
  }

  /**
   * Who waits for the first answer on a route of which nothing is known, to join them. `undefined` for the call that is to
   * bring that answer, which must call `endScouting`, and where an answer is known.
   */
  waitingForScout(call: CallInfo): Waiting | undefined {
    const route = routeOf(call)
    const waiting = this.#scouted.get(route)
    if (waiting === undefined && !this.#routes.has(route)) this.#scouted.set(route, new Set())
    return waiting
  }

  endScouting(call: CallInfo): void {
    const route = routeOf(call)
    const waiting = this.#scouted.get(route) ?? []
    this.#scouted.delete(route)
    for (const wake of [...waiting]) wake()
  }

  #gate(id: string, name: string | undefined): Gate {
    const gate = this.#gates.get(id) ?? new Gate(name, { pace: this.#pace })
    remember(this.#gates, { id, value: gate, max: maxGates })
    return gate
  }
}

/** Puts an entry at the end of a map, and takes the first one away when that makes too many. */
export function remember<T>(
  map: Map<string, T>,
  { id, value, max }: { id: string; value: T; max: number },
): void {
  map.delete(id)
  map.set(id, value)
  if (map.size <= max) return
  for (const oldest of map.keys()) {
    map.delete(oldest)
    return
  }
}

/** The method and path of a call, where parts with a digit stand for any: `/users/42` and `/users/43` are one route. */
function routeOf({ method, url }: CallInfo): string {
  return `${method} ${url.pathname.replace(/\/[^/]*\d[^/]*/g, '/:')}`
}
