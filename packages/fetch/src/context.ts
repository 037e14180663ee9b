import { fieldsOn, setFields } from '@sluice/http'
import { FetchContext } from './adapter/index.ts'

/** A request of fetch at one limiter. */
export class WebContext<Info extends object> extends FetchContext<[request: Request, info: Info]> {
  protected readonly info: Info = this.asked[1]
  protected headers: Headers = new Headers()

  /** Adds the fields to a copy: the response may be sent again, or its headers may be fixed. */
  override finish(response: Response): Response {
    if (typeof response?.headers?.get !== 'function') {
      throw new TypeError(`a handler must return a Response, but it returned ${String(response)}`)
    }
    // An error of the network, and a change of protocols: there are no copies of them.
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
