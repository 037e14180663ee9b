import { fieldsOn, setFields } from '@sluice/http'
import { FetchContext } from './adapter/index.ts'
import type { FetchCall } from './options.ts'

/** A fetch request at one limiter. */
export class WebContext<Info extends object> extends FetchContext<FetchCall<Info>> {
  protected readonly info: Info = this.asked[1]
  protected headers: Headers = new Headers()

  /** Adds the fields to a copy: the response may be reused, or its headers may be immutable. */
  override finish(response: Response): Response {
    if (typeof response?.headers?.get !== 'function') {
      throw new TypeError(`a handler must return a Response, but it returned ${String(response)}`)
    }
    // A network error or a protocol upgrade: neither can be copied.
    if (response.status < 200) return super.finish(response)
    const ours = this.headers
    const headers = new Headers(response.headers)
    this.headers = headers
    setFields(this.response, fieldsOn(this.shown, this.response))
    for (const [name, value] of ours) {
      if (!headers.has(name)) headers.set(name, value)
      else if (name === 'vary') headers.append(name, value)
    }
    return super.finish(response, headers)
  }
}
