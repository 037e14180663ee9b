import { SluiceError } from '@sluice/core'
import type { Reject, RequestDecision } from '../request/passage.ts'
import { reasonPhrase } from './problem.ts'

type Refused = Pick<Reject, 'status' | 'fields'> & { readonly decision: RequestDecision }

/**
 * A refused request as an error, if `handler` is `'throw'`: the framework's error handling answers
 * it. The response already has the fields; `headers` repeats them for frameworks that start a new
 * response.
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

  /** Hono's response to an unhandled error. */
  getResponse(): Response {
    return new Response(this.message, { status: this.status, headers: this.headers })
  }
}
