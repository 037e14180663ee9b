import type { Closing, Gate } from '../gates/gate.ts'
import type { GateKeeper } from '../gates/gate-keeper.ts'
import type { Answer } from '../messages/answer.ts'

/** By how much what is told may exceed a policy's reset: servers add jitter, up to the whole of it, and round up. */
const maxJitter = 2
const roundingMs = 1000

/**
 * Closes the gates of the policies that have refused a request, each for as long as it says itself. What is told beyond
 * that may be another's, which is not shown: it closes the route, and no policy.
 */
export function closeGates(
  { toldMs = 0, policies, violated }: Answer,
  closing: Omit<Closing, 'toldMs'>,
  { keeper, route }: { keeper: GateKeeper; route: string },
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
    close(keeper.policyGate(name), waitMs)
  }
  if (!isItsOwn) close(keeper.routeGate(route), toldMs)
}

/** The gates of the policies that have refused a request, or that of its route where none was named. */
export function refusingGates(
  { violated }: Answer,
  { keeper, route }: { keeper: GateKeeper; route: string },
): Gate[] {
  if (violated.length === 0) return [keeper.routeGate(route)]
  return violated.map((name) => keeper.policyGate(name))
}
