import type { Hold, HttpResponse, Passage, RequestContext } from '@sluice/http'
import type { LogRequest } from '../formats/log-request.ts'
import type { LogClock } from './log-clock.ts'

/** A response that nobody reads. */
const response: HttpResponse = {
  headersSent: false,
  getHeaderNames: () => [],
  getHeader: () => undefined,
  setHeader: () => undefined,
  removeHeader: () => undefined,
}

/** Status that nginx logs for a client that disconnected early. */
const clientLeft = 499

/** One request of a log at the guard. Its response ends at the log's time. */
export class ReplayContext implements RequestContext<LogRequest> {
  readonly native: LogRequest
  /** The identity by the policy file's `key`. */
  readonly client: string
  readonly response = response
  readonly scope = ''
  /** No application sees it, and each request has one guard. */
  readonly shown = undefined
  #holds: Hold[] | undefined

  constructor(request: LogRequest, client: string) {
    this.native = request
    this.client = client
  }

  get request(): LogRequest {
    return this.native
  }

  settleAtEnd(hold: Hold): void {
    this.#holds ??= []
    this.#holds.push(hold)
  }

  endLater({ decision, hold }: Passage, clock: LogClock): void {
    if (hold) this.settleAtEnd(hold)
    const holds = this.#holds
    if (!holds) return
    const { startMs, durationMs = 0, status } = this.native
    clock.at(startMs + (decision?.delayMs ?? 0) + durationMs, () => {
      for (const each of holds) {
        if (status === clientLeft) each.abort()
        else each.finish(status)
      }
    })
  }
}
