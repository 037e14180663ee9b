import { andThen, type MaybePromise, SluiceError } from '@sluice/core'
import type { HttpRequest } from '../request/exchange.ts'
import { ip, ipKey } from './ip.ts'
import { resolveKey } from './resolver.ts'

/**
 * The treatment of a request without a key:
 * - `ip`: its address is counted instead
 * - `deny`: it is refused
 * - `skip`: the policy is left out for the request; without any policy left, the request passes
 *   without headers
 * - `error`: `SLUICE_KEY_MISSING` goes to the error handling of the framework
 */
export type MissingKey = 'ip' | 'deny' | 'skip' | 'error'

export const missingKeyModes: readonly MissingKey[] = ['ip', 'deny', 'skip', 'error']

/** Policies are left out of a request, or the whole of it is refused. */
export type KeyOrMode = { readonly key: string } | 'deny' | 'skip'

const anyIp = ip()

/** One key for all that have no address, such as clients of a socket file. */
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
      ? `its address is not known: give it as remoteAddress, or by the option addressOf (in Nest exchangeOf), or give a key; else set onMissingKey to 'deny' or 'skip'. A test with app.request() of Hono has no connection: pass one, as in app.request('/', {}, { incoming: { socket: { remoteAddress: '127.0.0.1' } } })`
      : `add a fallback with firstOf(…, ip()), or set onMissingKey to 'ip', 'deny' or 'skip'`
  return new SluiceError(
    'SLUICE_KEY_MISSING',
    `key: none could be resolved for ${method} ${route ?? 'where no route is matched'}; ${advice}`,
  )
}
