import { andThen, type MaybePromise, SluiceError } from '@sluice/core'
import type { HttpRequest } from '../request/exchange.ts'
import { ip, ipKey } from './ip.ts'
import { resolveKey } from './resolver.ts'

/**
 * Treatment of a request without a key:
 * - `ip`: its address is counted instead
 * - `deny`: it is refused
 * - `skip`: the policy is left out for the request; without any policy left, the request passes
 *   without headers
 * - `error`: `SLUICE_KEY_MISSING` goes to the error handling of the framework
 */
export type MissingKey = 'ip' | 'deny' | 'skip' | 'error'

export const missingKeyModes: readonly MissingKey[] = ['ip', 'deny', 'skip', 'error']

/** Skips policies for a request, or refuses the whole request. */
export type KeyOrMode = { readonly key: string } | 'deny' | 'skip'

const anyIp = ip()

/** The key shared by all clients without an address, such as those of a Unix socket. */
const addressless = ipKey('')

export function insteadOfKey(mode: MissingKey, request: HttpRequest): MaybePromise<KeyOrMode> {
  if (mode === 'error') throw keyMissing(request)
  if (mode !== 'ip') return mode
  return andThen(resolveKey(anyIp, undefined, request), (key) => {
    if (key === undefined && request.needsAddress) throw keyMissing(request)
    return { key: key ?? addressless }
  })
}

function keyMissing({ method, route, ip, needsAddress }: HttpRequest): SluiceError {
  const advice =
    needsAddress && ip === undefined
      ? `its address is unknown: pass it as remoteAddress, set the option addressOf (exchangeOf in Nest), or set a key; otherwise set onMissingKey to 'deny' or 'skip'. Hono's app.request() has no connection in tests: pass one, as in app.request('/', {}, { incoming: { socket: { remoteAddress: '127.0.0.1' } } })`
      : `add a fallback with firstOf(…, ip()), or set onMissingKey to 'ip', 'deny' or 'skip'`
  return new SluiceError(
    'SLUICE_KEY_MISSING',
    `key: none found for ${method} ${route ?? '(no route matched)'}; ${advice}`,
  )
}
