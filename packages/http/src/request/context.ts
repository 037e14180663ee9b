import type { HttpRequest, HttpResponse, Scope } from './exchange.ts'
import type { Hold, RequestDecision } from './passage.ts'

/** One request and its response, as an adapter shows them to a guard. */
export interface RequestContext<Native> {
  /** The framework's request, passed to user functions. */
  readonly native: Native
  readonly request: HttpRequest
  readonly response: HttpResponse
  /** The place of the guard; '' for the whole application. */
  readonly scope: Scope
  /**
   * The last decision on this request that the application saw. Guards of the same response
   * recognise each other by it. An adapter that exposes no decision omits this property.
   */
  readonly shown?: RequestDecision | undefined
  /** Settles a hold when the response ends; at once, if it has ended. */
  settleAtEnd(hold: Hold): void
}
