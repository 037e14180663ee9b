import { isOptions, type MaybePromise, onOneLine, warnOnce } from '@sluice/core'
import type { HandlerRequest } from '@sluice/http'
import { isNoteText } from '@sluice/policies'

/** A role: may read, act on keys and jobs, or change policies. */
export type Role = 'read' | 'keys' | 'policies'

const roles: readonly Role[] = ['read', 'keys', 'policies']

/** An authorised caller. */
export interface Granted {
  /** The name in the audit trail, such as an e-mail address. */
  readonly actor: string
  readonly may: readonly Role[]
}

/** Anything but a grant is a refusal. */
type Grant = Granted | false | null | undefined | '' | 0

/**
 * Authorises callers. `'localhost'`: a request from this machine may do everything.
 * @typeParam Native the framework's request
 */
export type Authorize<Native> = 'localhost' | ((request: Native) => MaybePromise<Grant>)

/** @returns `undefined` for a caller without roles */
export async function granted<Native>(
  authorize: Authorize<Native> | undefined,
  request: HandlerRequest<Native>,
): Promise<Granted | undefined> {
  if (authorize === undefined) return undefined
  if (authorize === 'localhost') {
    return isFromHere(request) ? { actor: 'localhost', may: roles } : undefined
  }
  return readGrant(await authorize(request.native))
}

const maxActorLength = 200

function readGrant(grant: unknown): Granted | undefined {
  if (!grant) return undefined
  if (isOptions(grant) && 'actor' in grant && 'may' in grant) {
    const { actor, may } = grant
    // A name from outside must not break a log line.
    const name = onOneLine(onOneLine(String(actor).trim()).slice(0, maxActorLength))
    if (typeof actor === 'string' && isNoteText(name) && Array.isArray(may)) {
      return { actor: name, may: roles.filter((role) => may.includes(role)) }
    }
  }
  warnOnce(
    `authorize must return false, or { actor: 'ada@example.com', may: ['read', 'keys', 'policies'] }; anything else is refused`,
    'answer of authorize',
  )
  return undefined
}

/** Proxies add one of these: then the request may come from anywhere. */
const forwardingHeaders = [
  ...['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host'],
  ...['x-forwarded-proto', 'x-forwarded-port', 'x-forwarded-server', 'x-real-ip'],
  ...['x-client-ip', 'x-cluster-client-ip', 'x-original-forwarded-for', 'true-client-ip'],
  ...['cf-connecting-ip', 'fastly-client-ip', 'fly-client-ip'],
]

/** Names of this machine. A page of another site that resolves to it has a different Host. */
const localHost = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i
const loopback = /^(?:::ffff:)?127(?:\.\d{1,3}){3}$|^::1$/i

function isFromHere(request: HandlerRequest): boolean {
  const { peer } = request
  if (peer === undefined || !loopback.test(peer)) return false
  if (!localHost.test(request.header('host') ?? '')) return false
  return forwardingHeaders.every((name) => request.header(name) === undefined)
}
