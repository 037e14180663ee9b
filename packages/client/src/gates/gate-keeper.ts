import type { Answer } from '../messages/answer.ts'
import type { Waiting } from '../time/pause.ts'
import { Gate } from './gate.ts'
import { Line } from './line.ts'
import { isBusyNow, remember } from './remember.ts'

/**
 * The gates of one key, and which of them are on the way of which call. The server does not say that before it has
 * answered: a route that was answered once has the policies of that answer. A new route has those that were seen on
 * several routes, so that a policy of all routes holds all calls, and one of the login holds the login alone.
 */
export class GateKeeper {
  readonly line: Line = new Line()
  readonly #pace: boolean
  readonly #gates = new Map<string, Gate>()
  readonly #routes = new Map<string, ReadonlySet<string>>()
  /** What was found out of the two, until one of them changes. */
  readonly #found = new Map<string, readonly Gate[]>()
  /** Routes of which nothing is known yet, with the calls that wait for the answer to the first call. */
  readonly #scouted = new Map<string, Waiting>()

  constructor(options: { pace: boolean }) {
    this.#pace = options.pace
  }

  gatesOf(route: string): readonly Gate[] {
    const known = this.#found.get(route)
    if (known !== undefined) return known
    const own = this.#gates.get(route)
    const ids = this.#routes.get(route)
    const gates = ids
      ? [...ids].flatMap((id) => this.#gates.get(id) ?? [])
      : [...this.#gates.values()].filter(({ routes }) => routes.size > 1)
    const found = own === undefined ? gates : [...gates, own]
    remember(this.#found, { id: route, value: found })
    return found
  }

  /** The gate of a route alone, for what no policy was named for. */
  routeGate(route: string): Gate {
    return this.#gate(route, undefined)
  }

  policyGate(name: string): Gate {
    return this.#gate(policyId(name), name)
  }

  /** Notes which policies an answer on a route has named, and what is left of them where it was no refusal that told when. */
  learn(route: string, { policies, toldMs }: Answer, nowMs: number): void {
    let isNews = false
    const before = this.#routes.get(route)
    if (policies.length === 0 && before !== undefined) return
    // An answer may be older than one that was heard before, and older dialects name one policy of several.
    const isBusy = (id: string): boolean => this.#gates.get(id)?.isBusy(nowMs) === true
    const kept = [...(before ?? [])].filter(isBusy)
    const ids = new Set([...kept, ...policies.map(({ name }) => policyId(name))])
    remember(this.#routes, { id: route, value: ids, isKept: (one) => [...one].some(isBusy) })
    this.#found.clear()
    // Who waits for the gates that the route was taken to have may not have to.
    if (before === undefined || [...before].some((id) => !ids.has(id))) isNews = true
    for (const policy of policies) {
      const gate = this.policyGate(policy.name)
      if (gate.routes.size < 2) gate.routes.add(route)
      gate.measure(policy)
      if (toldMs !== undefined) continue
      if (gate.learn(policy, { nowMs, waiting: this.line.waitingFor(gate) })) isNews = true
    }
    if (isNews) this.line.move()
  }

  /** Whether there is something to be forgotten with it. */
  isBusy(nowMs: number): boolean {
    return !this.line.isEmpty || [...this.#gates.values()].some((gate) => gate.isBusy(nowMs))
  }

  /**
   * Who waits for the first answer on a route of which nothing is known, to join them. `undefined` for the call that is to
   * bring that answer, which must call `endScouting`, and where an answer is known.
   */
  waitingForScout(route: string): Waiting | undefined {
    const waiting = this.#scouted.get(route)
    if (waiting === undefined && !this.#routes.has(route)) this.#scouted.set(route, new Set())
    return waiting
  }

  endScouting(route: string): void {
    const waiting = this.#scouted.get(route) ?? []
    this.#scouted.delete(route)
    for (const wake of [...waiting]) wake()
  }

  #gate(id: string, name: string | undefined): Gate {
    const known = this.#gates.get(id)
    if (known === undefined) this.#found.clear()
    const gate = known ?? new Gate(name, { pace: this.#pace })
    remember(this.#gates, { id, value: gate, isKept: isBusyNow })
    return gate
  }
}

function policyId(name: string): string {
  return `policy ${name}`
}
