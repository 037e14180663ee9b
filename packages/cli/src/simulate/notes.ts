import { algorithmOf } from '@sluice/core/backend'
import type { Replay, Replayed } from '../replay/replay.ts'
import type { LogReport } from '../report/simulation-report.ts'

/** Status of a request that was refused for its rate already. */
const tooMany = 429
/** Shorter windows are not seen by times in whole seconds. */
const coarseWindowMs = 10_000

/** Notices what a log cannot tell, while it is replayed. */
export function notesOf(replay: Pick<Replay, 'policies' | 'notes'>): LogNotes {
  return new LogNotes(replay)
}

class LogNotes {
  readonly #replay: Pick<Replay, 'policies' | 'notes'>
  #requests = 0
  #refusedBefore = 0
  #withDuration = 0
  #withoutAddress = 0
  #isWholeSeconds = true
  #preflights = 0

  constructor(replay: Pick<Replay, 'policies' | 'notes'>) {
    this.#replay = replay
  }

  see({ request }: Replayed): void {
    this.#requests += 1
    if (request.status === tooMany) this.#refusedBefore += 1
    if (request.durationMs !== undefined) this.#withDuration += 1
    if (request.ip === undefined) this.#withoutAddress += 1
    if (request.loggedMs % 1_000 !== 0) this.#isWholeSeconds = false
    if (request.method === 'OPTIONS') this.#preflights += 1
  }

  notes({ late }: LogReport): readonly string[] {
    const { policies, notes } = this.#replay
    const found = [...notes]
    const short = policies.find(({ windowMs }) => windowMs < coarseWindowMs)
    const counts = policies.find((policy) => algorithmOf(policy).counts === 'leases')
    if (this.#isWholeSeconds && short) {
      found.push(
        `the times of the log are whole seconds, so '${short.name}' sees the requests of a second as one burst; log $msec for exact times`,
      )
    }
    if (counts && this.#withDuration < this.#requests) {
      const missing = this.#requests - this.#withDuration
      found.push(
        `${missing} requests have no duration, so '${counts.name}' takes them for over at once; log $request_time`,
      )
    }
    if (this.#refusedBefore > 0) {
      found.push(
        `${this.#refusedBefore} requests were answered 429 already, so a limit was in force when the log was written`,
      )
    }
    if (this.#withoutAddress > 0) {
      found.push(`${this.#withoutAddress} requests have no address`)
    }
    if (this.#preflights > 0) {
      found.push(
        `${this.#preflights} OPTIONS requests were counted; preflights among them are not counted where CORS middleware runs before the limiter, or with preflights: 'pass'`,
      )
    }
    if (late > 0) {
      found.push(
        `${late} requests were more out of order than --order-window, and moved to their place`,
      )
    }
    return found
  }
}
