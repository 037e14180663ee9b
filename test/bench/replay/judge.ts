import type { Figures } from '../harness/figures.ts'
import type { Quota } from '../subjects/algorithm-policy.ts'

/** A request as the server saw it. */
export interface Seen {
  readonly client: string
  readonly atMs: number
  /** When it went on; `undefined` when it was refused. */
  readonly passedAtMs: number | undefined
  /** How long the limiter held it, by intention. */
  readonly delayMs: number
}

/** Compares what was admitted with an exact sliding window over the same requests at the same times. */
export function judge(journal: readonly Seen[], { limit, windowMs }: Quota): Figures {
  const byClient = new Map<string, Seen[]>()
  for (const seen of journal) {
    const list = byClient.get(seen.client)
    if (list) list.push(seen)
    else byClient.set(seen.client, [seen])
  }
  let admitted = 0
  let ideal = 0
  let most = 0
  for (const requests of byClient.values()) {
    const times = requests.map(({ atMs }) => atMs)
    const passed = requests.flatMap(passage)
    admitted += passed.length
    ideal += idealTimes(times, { limit, windowMs }).length
    most = Math.max(most, mostInWindow(passed, windowMs))
  }
  return {
    admittedToIdeal: admitted / ideal,
    worstWindow: most / limit,
    allowedShare: admitted / journal.length,
  }
}

/** The times at which an exact sliding window admits. */
function idealTimes(times: readonly number[], { limit, windowMs }: Quota): number[] {
  const admitted: number[] = []
  for (const time of times) {
    // The unit that has to have left for this one to find room.
    const blocking = admitted[admitted.length - limit]
    if (blocking === undefined || blocking <= time - windowMs) admitted.push(time)
  }
  return admitted
}

/** Between which times a request was decided and let go: nobody but the store knows when exactly. */
interface Passage {
  readonly fromMs: number
  readonly toMs: number
}

function passage({ atMs, passedAtMs, delayMs }: Seen): Passage[] {
  if (passedAtMs === undefined) return []
  return [{ fromMs: atMs + delayMs, toMs: Math.max(passedAtMs, atMs + delayMs) }]
}

/** The most passages that lie for certain in one window: from the start of one of them, and shorter than `windowMs`. */
function mostInWindow(passages: readonly Passage[], windowMs: number): number {
  let most = 0
  for (const { fromMs } of passages) {
    const inside = passages.filter((one) => one.fromMs >= fromMs && one.toMs < fromMs + windowMs)
    most = Math.max(most, inside.length)
  }
  return most
}
