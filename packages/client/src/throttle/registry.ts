import type { Answer } from '../calls/answer.ts'
import type { Call, Fetch, KeyFunction } from '../calls/call.ts'
import { clockMs, type Waiting } from '../runtime/clock.ts'
import { processWide } from '../runtime/process-wide.ts'
import { type Closing, Gate } from './gate.ts'
import type { Moment } from './pace.ts'
import { CallQueue } from './queue.ts'

/** Factor and ms by which a wait may exceed a reset: servers add jitter, and round up. */
const maxJitter = 2
const roundingMs = 1000

/**
 * The gates of one key, by route. A route has the gates of the policies that its answers named. A
 * route without an answer has the gates of policies that were seen on several routes. So a policy
 * for all routes holds all calls, but a login policy holds only logins.
 */
export class GateRegistry {
  readonly queue: CallQueue = new CallQueue()
  readonly #options: { readonly pace: boolean }
  readonly #gates = new Map<string, Gate>()
  readonly #routes = new Map<string, ReadonlySet<string>>()
  /** Gates by route, cached until the gates or the routes change. */
  readonly #found = new Map<string, readonly Gate[]>()
  /** Routes without an answer yet, with the calls that wait for the first answer. */
  readonly #firstCalls = new Map<string, Waiting>()

  constructor(options: { readonly pace: boolean }) {
    this.#options = options
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
    remember(this.#found, [route, found])
    return found
  }

  /** Returns the gates of the policies that refused, or of the route if none is named. */
  refusingGates({ violated }: Answer, route: string): Gate[] {
    if (violated.length === 0) return [this.#gate(route)]
    return violated.map((name) => this.#policyGate(name))
  }

  /**
   * Closes the gates of the policies that refused a request, each until its own reset. A longer
   * wait may come from a hidden policy: it closes the route, but no policy.
   */
  close(
    { toldMs = 0, policies, violated }: Answer,
    closing: Omit<Closing, 'toldMs'>,
    route: string,
  ): void {
    const close = (gate: Gate, waitMs: number): void =>
      gate.close({ ...closing, toldMs: closing.nowMs + waitMs })
    const refusing = policies.filter(({ name }) => violated.includes(name))
    const latestMs = Math.max(...refusing.map(({ resetMs = toldMs }) => resetMs))
    const isItsOwn = toldMs <= latestMs * maxJitter + roundingMs
    for (const { name, resetMs = toldMs } of refusing) {
      const waitMs = isItsOwn && resetMs === latestMs ? toldMs : Math.min(resetMs, toldMs)
      close(this.#policyGate(name), waitMs)
    }
    if (!isItsOwn) close(this.#gate(route), toldMs)
  }

  /** Records the policies in an answer; their remaining units only if it has no wait. */
  learn(route: string, { policies, toldMs }: Answer, time: Omit<Moment, 'waiting'>): void {
    const before = this.#routes.get(route)
    if (policies.length === 0 && before !== undefined) return
    // Answers may arrive out of order, and older dialects name one policy of several.
    const isBusy = (id: string): boolean => this.#gates.get(id)?.isBusy(time.nowMs) === true
    const kept = [...(before ?? [])].filter(isBusy)
    const ids = new Set([...kept, ...policies.map(({ name }) => policyId(name))])
    remember(this.#routes, [route, ids], (one) => [...one].some(isBusy))
    this.#found.clear()
    // The route may have other gates than assumed, so that waiting calls can go.
    let isNews = before === undefined || [...before].some((id) => !ids.has(id))
    for (const policy of policies) {
      const gate = this.#policyGate(policy.name)
      if (gate.routes.size < 2) gate.routes.add(route)
      const moment = { ...time, waiting: this.queue.waitingFor(gate) }
      if (gate.learn(policy, toldMs === undefined ? moment : undefined)) isNews = true
    }
    if (isNews && !this.queue.isEmpty) this.queue.moveSoon()
  }

  /** True if the registry holds state that must not be forgotten. */
  isBusy(nowMs: number): boolean {
    return !this.queue.isEmpty || [...this.#gates.values()].some((gate) => gate.isBusy(nowMs))
  }

  /**
   * Returns the calls that wait for the first answer on a route. Returns `undefined` for the first
   * call, which must call `endFirst`, and for a route with an answer.
   */
  waitingForFirst(route: string): Waiting | undefined {
    const waiting = this.#firstCalls.get(route)
    if (waiting === undefined && !this.#routes.has(route)) this.#firstCalls.set(route, new Set())
    return waiting
  }

  endFirst(route: string): void {
    const waiting = this.#firstCalls.get(route) ?? []
    this.#firstCalls.delete(route)
    for (const wake of [...waiting]) wake()
  }

  #policyGate(name: string): Gate {
    return this.#gate(policyId(name), name)
  }

  /** Gate of a policy, or of a route, for refusals that name no policy. */
  #gate(id: string, name?: string): Gate {
    const known = this.#gates.get(id)
    if (known === undefined) this.#found.clear()
    const gate = known ?? new Gate(name, this.#options)
    remember(this.#gates, [id, gate], isBusyNow)
    return gate
  }
}

function policyId(name: string): string {
  return `policy ${name}`
}

/** Maximum number of entries per map. */
const maxEntries = 1000

/**
 * Puts an entry at the end of a map, which drops its oldest entry if it is too long.
 * @param isKept true for an entry that is dropped only after all others
 */
function remember<T>(
  map: Map<string, T>,
  [id, value]: readonly [id: string, value: T],
  isKept: (value: T) => boolean = () => false,
): void {
  map.delete(id)
  if (map.size >= maxEntries) {
    let [dropped = id] = map.keys()
    for (const [other, one] of map) {
      if (isKept(one)) continue
      dropped = other
      break
    }
    map.delete(dropped)
  }
  map.set(id, value)
}

/** True if an entry still matters. */
function isBusyNow(one: { isBusy(nowMs: number): boolean }): boolean {
  return one.isBusy(clockMs())
}

/**
 * Registries of all clients of a process, by their `fetch` and key functions. Another `fetch` may
 * reach another server, and keys from two functions mean different things.
 */
const processRegistries = processWide(
  '@sluice/client/registries/1',
  () => new WeakMap<Fetch, WeakMap<KeyFunction, Map<string, GateRegistry>>>(),
)

export function registryOf(
  call: Call,
  send: Fetch,
  { key, pace }: { readonly key: KeyFunction; readonly pace: boolean },
): GateRegistry {
  const id = key(call)
  if (id === undefined) return new GateRegistry({ pace })
  const registries = registriesOf(send, key)
  const pacedId = `${pace ? 'paced' : 'free'} ${id}`
  const registry = registries.get(pacedId) ?? new GateRegistry({ pace })
  remember(registries, [pacedId, registry], isBusyNow)
  return registry
}

function registriesOf(send: Fetch, key: KeyFunction): Map<string, GateRegistry> {
  const bySender =
    processRegistries.get(send) ?? new WeakMap<KeyFunction, Map<string, GateRegistry>>()
  processRegistries.set(send, bySender)
  const registries = bySender.get(key) ?? new Map<string, GateRegistry>()
  bySender.set(key, registries)
  return registries
}
