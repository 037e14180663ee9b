import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException } from '@nestjs/common'
import { plainProblem } from '@sluice/http'
import type { RequestDecision, ResponseBody } from '@sluice/http/adapter'
import { platformOf } from './platform.ts'

/**
 * A refused request, or one that a queue has taken. The guard throws it. The headers are set
 * already, so a filter need only reply.
 */
export class RateLimitException extends HttpException {
  override readonly name = 'RateLimitException'
  /** `undefined` where nothing was decided. */
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
 * Sends refusals byte for byte as the other adapters do. Without it Nest adds a charset to the
 * content type, and makes an object of a text. It is for HTTP only: in other contexts it throws the
 * exception again. In a gateway, let the option `handler` make a `WsException`.
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

// As calls: tools that leave decorators alone, or the types of parameters out, can do these.
Catch(RateLimitException)(RateLimitFilter)
