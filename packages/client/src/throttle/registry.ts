import type { Answer } from '../answer.ts'
import type { Call, Fetch } from '../call.ts'
import { clockMs, type Waiting } from '../clock.ts'
import { processWide } from '../process-wide.ts'
import { type Closing, Gate } from './gate.ts'
import { CallQueue } from './queue.ts'

/**
 * The gates of one key, by route. A route has the gates of the policies that its answers named. A
 * route without an answer has the gates of policies that were seen on several routes. So a policy
 * for all routes holds all calls, and one for the login holds the login alone.
 */
export class GateRegistry {
  readonly queue: CallQueue = new CallQueue()
  readonly #pace: boolean
  readonly #gates = new Map<string, Gate>()
  readonly #routes = new Map<string, ReadonlySet<string>>()
  /** Gates by route, cached until the gates or the routes change. */
  readonly #found = new Map<string, readonly Gate[]>()
  /** Routes without an answer yet, with the calls that wait for the first answer. */
  readonly #firstCalls = new Map<string, Waiting>()

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

  /** Gate of a route alone, for refusals that name no policy. */
  routeGate(route: string): Gate {
    return this.#gate(route, undefined)
  }

  policyGate(name: string): Gate {
    return this.#gate(policyId(name), name)
  }

  /**
   * Notes the policies that an answer on a route names, and their remaining units unless it refused
   * with a wait.
   */
  learn(route: string, { policies, toldMs }: Answer, nowMs: number): void {
    let isNews = false
    const before = this.#routes.get(route)
    if (policies.length === 0 && before !== undefined) return
    // Answers may arrive out of order, and older dialects name one policy of several.
    const isBusy = (id: string): boolean => this.#gates.get(id)?.isBusy(nowMs) === true
    const kept = [...(before ?? [])].filter(isBusy)
    const ids = new Set([...kept, ...policies.map(({ name }) => policyId(name))])
    remember(this.#routes, { id: route, value: ids, isKept: (one) => [...one].some(isBusy) })
    this.#found.clear()
    // The route may have other gates than assumed, so that waiting calls can go.
    if (before === undefined || [...before].some((id) => !ids.has(id))) isNews = true
    for (const policy of policies) {
      const gate = this.policyGate(policy.name)
      if (gate.routes.size < 2) gate.routes.add(route)
      gate.measure(policy)
      if (toldMs !== undefined) continue
      if (gate.learn(policy, { nowMs, waiting: this.queue.waitingFor(gate) })) isNews = true
    }
    if (isNews) this.queue.move()
  }

  /** True if the registry holds state that must not be forgotten. */
  isBusy(nowMs: number): boolean {
    return !this.queue.isEmpty || [...this.#gates.values()].some((gate) => gate.isBusy(nowMs))
  }

  /**
   * Returns the calls that wait for the first answer on an unknown route, for the call to join.
   * Returns `undefined` for the first call, which must call `endFirst`, and for a route with an
   * answer.
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

interface Entry<T> {
  readonly id: string
  readonly value: T
  /** True for an entry that is dropped only after all others. */
  isKept?(value: T): boolean
}

/** Entries of each map at most. */
const maxEntries = 1000

/**
 * Puts an entry at the end of a map. A map that is too long loses its oldest entry that need not be
 * kept.
 */
function remember<T>(map: Map<string, T>, { id, value, isKept }: Entry<T>): void {
  map.delete(id)
  if (map.size >= maxEntries) map.delete(leastWanted(map, isKept) ?? id)
  map.set(id, value)
}

function leastWanted<T>(map: Map<string, T>, isKept?: Entry<T>['isKept']): string | undefined {
  let oldest: string | undefined
  for (const [id, value] of map) {
    if (!isKept?.(value)) return id
    oldest ??= id
  }
  return oldest
}

/** True if an entry still matters. */
function isBusyNow(one: { isBusy(nowMs: number): boolean }): boolean {
  return one.isBusy(clockMs())
}

/** Returns the key of a call. */
type KeyFunction = (call: Call) => string | undefined

/**
 * Registries of all clients of a process, by the function that sends requests and the function that
 * makes keys. Another `fetch` may reach another server, as in tests. Keys of two functions have
 * nothing to do with each other.
 */
const processRegistries = processWide(
  '@sluice/client/registries/1',
  () => new WeakMap<Fetch, WeakMap<KeyFunction, Map<string, GateRegistry>>>(),
)

interface Keeping {
  readonly send: Fetch
  readonly key: KeyFunction
  readonly pace: boolean
}

export function registryOf(call: Call, { send, key, pace }: Keeping): GateRegistry {
  const id = key(call)
  if (id === undefined) return new GateRegistry({ pace })
  const registries = registriesOf(send, key)
  const pacedId = `${pace ? 'paced' : 'free'} ${id}`
  const registry = registries.get(pacedId) ?? new GateRegistry({ pace })
  remember(registries, { id: pacedId, value: registry, isKept: isBusyNow })
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

/**
 * Factor and ms by which a told wait may exceed a policy's reset: servers add jitter, up to the
 * whole reset, and round up.
 */
const maxJitter = 2
const roundingMs = 1000

/**
 * Closes the gates of the policies that refused a request, each until its own reset. A longer told
 * wait may come from a hidden policy: it closes the route, and no policy.
 */
export function closeGates(
  { toldMs = 0, policies, violated }: Answer,
  closing: Omit<Closing, 'toldMs'>,
  { registry, route }: { registry: GateRegistry; route: string },
): void {
  const close = (gate: Gate, waitMs: number): void =>
    gate.close({ ...closing, toldMs: closing.nowMs + waitMs })
  const refusing = policies.filter(({ name }) => violated.includes(name))
  const resets = refusing.map(({ resetMs = toldMs }) => resetMs)
  const latestMs = Math.max(...resets)
  const isItsOwn = toldMs <= latestMs * maxJitter + roundingMs
  for (const [index, { name }] of refusing.entries()) {
    const resetMs = resets[index] ?? toldMs
    const waitMs = isItsOwn && resetMs === latestMs ? toldMs : Math.min(resetMs, toldMs)
    close(registry.policyGate(name), waitMs)
  }
  if (!isItsOwn) close(registry.routeGate(route), toldMs)
}

/**
 * Returns the gates of the policies that refused a request, or the gate of its route if no policy
 * is named.
 */
export function refusingGates(
  { violated }: Answer,
  { registry, route }: { registry: GateRegistry; route: string },
): Gate[] {
  if (violated.length === 0) return [registry.routeGate(route)]
  return violated.map((name) => registry.policyGate(name))
}
