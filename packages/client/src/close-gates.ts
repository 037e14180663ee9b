import type { Answer } from './answer.ts'
import type { CallInfo } from './call.ts'
import type { Closing, Gate } from './gate.ts'
import type { GateKeeper } from './gate-keeper.ts'

/**
 * Closes the gates of the policies that have refused a request, or that of its route where none was named. One policy is
 * closed until the time told; of several, those that are over earlier only until they are.
 */
export function closeGates(
  { toldMs = 0, policies, violated }: Answer,
  closing: Omit<Closing, 'toldMs'>,
  { keeper, call }: { keeper: GateKeeper; call: CallInfo },
): void {
  const close = (gate: Gate, waitMs: number): void =>
    gate.close({ ...closing, toldMs: closing.nowMs + waitMs })
  const refusing = policies.filter(({ name }) => violated.includes(name))
  const waits = refusing.map(({ resetMs = toldMs }) => Math.min(resetMs, toldMs))
  const latest = waits.indexOf(Math.max(...waits))
  for (const [index, { name }] of refusing.entries()) {
    const gate = keeper.policyGate(name)
    close(gate, index === latest ? toldMs : (waits[index] ?? toldMs))
  }
  if (refusing.length === 0) close(keeper.routeGate(call), toldMs)
}

/** The gates that an answer closes. */
export function refusingGates(
  { policies, violated }: Answer,
  { keeper, call }: { keeper: GateKeeper; call: CallInfo },
): Gate[] {
  const refusing = policies.filter(({ name }) => violated.includes(name))
  if (refusing.length === 0) return [keeper.routeGate(call)]
  return refusing.map(({ name }) => keeper.policyGate(name))
}
