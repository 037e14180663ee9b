import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException } from '@nestjs/common'
import { plainProblem } from '@sluice/http'
import type { RequestDecision, ResponseBody } from '@sluice/http/adapter'
import { platformOf } from './platform.ts'

/**
 * A refused request, or one that a queue has accepted. The guard throws it. The headers are already
 * set, so a filter only has to reply.
 */
export class RateLimitException extends HttpException {
  override readonly name = 'RateLimitException'
  /** `undefined` if nothing was decided. */
  readonly decision: RequestDecision | undefined
  readonly body: ResponseBody

  constructor(status: number, body: ResponseBody, decision: RequestDecision | undefined) {
    super(body.contentType.includes('json') ? JSON.parse(body.text) : body.text, status)
    this.message = plainProblem(status).title
    this.body = body
    this.decision = decision
  }
}

/**
 * Sends refusals byte for byte like the other adapters. Without it, Nest adds a charset to the
 * content type, and turns a string into an object. It is for HTTP only: in other contexts it
 * rethrows the exception. In a gateway, use the option `handler` to create a `WsException`.
 * @example
 * providers: [{ provide: APP_FILTER, useClass: RateLimitFilter }]
 */
export class RateLimitFilter implements ExceptionFilter<RateLimitException> {
  catch(exception: RateLimitException, host: ArgumentsHost): void {
    if (host.getType() !== 'http') throw exception
    const [request, response] = host.getArgs<[object, object]>()
    platformOf({ request, response }).send(exception.getStatus(), exception.body)
  }
}

// Applied as calls, for tools that do not support decorators or parameter types.
Catch(RateLimitException)(RateLimitFilter)
