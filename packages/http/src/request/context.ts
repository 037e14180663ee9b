import type { HttpRequest, HttpResponse } from './exchange.ts'
import type { Hold, RequestDecision } from './passage.ts'
import type { Scope } from './scope.ts'

/** One request and its response, as an adapter shows them to a guard. */
export interface RequestContext<Native> {
  /** The framework's request, which users' functions are given. */
  readonly native: Native
  readonly request: HttpRequest
  readonly response: HttpResponse
  /** The place of the guard; '' for the whole application. */
  readonly scope: Scope
  /**
   * The last decision on this request that the application was shown: by it, guards of one response
   * know each other. An adapter that shows none leaves this property out.
   */
  readonly shown?: RequestDecision | undefined
  /** Settles a hold when the response is over: at once, if it is. */
  settleAtEnd(hold: Hold): void
}
