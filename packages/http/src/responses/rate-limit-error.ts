import { SluiceError } from '@sluice/core'
import type { Reject, RequestDecision } from '../request/passage.ts'
import { reasonPhrase } from './problem.ts'

type Refused = Pick<Reject, 'status' | 'fields'> & { readonly decision: RequestDecision }

/**
 * A refused request as an error, where `handler` is `'throw'`: the error handling of the framework
 * answers it. The fields stand on the response already; `headers` repeats them for frameworks that
 * begin anew.
 */
export class RateLimitError extends SluiceError {
  override readonly name = 'RateLimitError'
  readonly status: number
  readonly statusCode: number
  readonly headers: Readonly<Record<string, string>>
  readonly decision: RequestDecision

  constructor({ status, fields, decision }: Refused) {
    super('SLUICE_REFUSED', reasonPhrase(status) ?? 'Too Many Requests')
    this.status = status
    this.statusCode = status
    this.headers = Object.fromEntries(
      fields.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
    )
    this.decision = decision
  }

  /** The answer of Hono to an error that nobody handles. */
  getResponse(): Response {
    return new Response(this.message, { status: this.status, headers: this.headers })
  }
}
