import {
  andThen,
  invalid,
  knownFields,
  type MaybePromise,
  orDefault,
  quote,
  warnOnce,
} from '@sluice/core'
import type { HttpRequest } from '../request/exchange.ts'
import { defineIdentity, type IdentityResolver } from './resolver.ts'

/**
 * The value of a request header. A blank header counts as missing. Long values are fine: stores
 * hash them. **Clients choose their headers.** A header is an identity only if your proxy, or code
 * before the limiter, sets or checks it. Otherwise every made-up value gets its own full limit.
 */
export function header(name: string): IdentityResolver<unknown> {
  const field = headerName(name, 'header(name)')
  const tag = `@header/${field}/`
  return defineIdentity(
    (_native, request) => tagged(tag, present(request, field)),
    (value) => tag + identityText(value, `header('${field}').keyOf(value)`),
  )
}

/** A non-empty string. Messages do not show it: it may be a secret. */
export function identityText(value: unknown, option: string): string {
  if (typeof value === 'string' && value !== '') return value
  throw invalid({ option }, typeof value === 'string' ? '' : typeof value, 'a non-empty string')
}

function present(request: HttpRequest, field: string): string | undefined {
  const value = request.header(field)
  return value === undefined || value.trim() === '' ? undefined : value
}

function tagged(tag: string, value: string | undefined): string | undefined {
  return value === undefined ? undefined : `${tag}${value}`
}

function headerName(name: unknown, option: string): string {
  if (typeof name === 'string' && /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/.test(name)) {
    return name.toLowerCase()
  }
  throw invalid({ option }, name, `the name of a header, such as 'x-api-key'`)
}

/** Options of `bearer`, and of other keys that clients send. */
export interface CredentialOptions<Native = unknown> {
  /**
   * Returns whether you issued this credential; may be async. Only `true` means yes. Otherwise the
   * request has no key here, and the next resolver of `firstOf`, or `onMissingKey`, decides.
   * **Without `verify`, every made-up credential gets a full limit.** `false` means that something
   * before the limiter rejects them, so nothing is verified here.
   * @default none: every credential counts as valid, and a limiter warns once
   */
  verify?: ((credential: string, request: Native) => MaybePromise<boolean>) | false | undefined
}

function credentialKey<Native>(
  { name, tag }: { readonly name: string; readonly tag: string },
  verify: CredentialOptions<Native>['verify'],
  find: (request: HttpRequest) => string | undefined,
): IdentityResolver<Native> {
  if (verify !== undefined && verify !== false && typeof verify !== 'function') {
    const legal =
      'a function that returns true or false, or false if something before the limiter rejects unknown credentials'
    throw invalid({ option: `verify of ${name}` }, verify, legal)
  }
  return defineIdentity<Native, [string]>(
    (native, request) => {
      const credential = find(request)
      if (credential === undefined || !verify) return tagged(tag, credential)
      return andThen(verify(credential, native), (answer) =>
        isVerified(answer, name) ? `${tag}${credential}` : undefined,
      )
    },
    (credential) => `${tag}${identityText(credential, `${name}.keyOf(credential)`)}`,
    verify === undefined ? 'unverified' : undefined,
  )
}

/** Does not show the value itself: it may be a record stored with the credential. */
function isVerified(answer: unknown, name: string): boolean {
  if (typeof answer !== 'boolean') {
    const what = typeof answer === 'object' ? 'an object' : quote(answer)
    warnOnce(
      `verify of ${name} must return true or false, but returned ${answer === null ? 'null' : what}; the credential was ignored`,
      `verify of ${name}`,
    )
  }
  return answer === true
}

/** Options of `apiKey`. */
export interface ApiKeyOptions<Native = unknown> extends CredentialOptions<Native> {
  /** Header that carries the credential. @default 'x-api-key' */
  header?: string | undefined
}

/**
 * The API key of a request. **Anybody can make up API keys.** Set `verify`, or reject unknown keys
 * before the limiter. Otherwise every made-up key gets its own full limit. Limit logins by address
 * and account, never by this alone.
 * @example
 * key: firstOf(apiKey({ verify: (key) => issued.has(key) }), ip())
 */
export function apiKey<Native>(options: ApiKeyOptions<Native> = {}): IdentityResolver<Native> {
  knownFields(options, 'apiKey', ['header', 'verify'])
  const field = headerName(orDefault(options.header, 'x-api-key'), 'header')
  const kind = { name: 'apiKey(…)', tag: '@key/' }
  return credentialKey(kind, options.verify, (request) => present(request, field))
}

/**
 * The token of `Authorization: Bearer <token>`; missing for any other scheme. **Anybody can make up
 * tokens.** Set `verify`, or reject unknown tokens before the limiter. Otherwise every made-up
 * token gets its own full limit.
 * @example
 * key: firstOf(bearer({ verify: async (token) => (await sessionOf(token)) !== undefined }), ip())
 */
export function bearer<Native>(options: CredentialOptions<Native> = {}): IdentityResolver<Native> {
  knownFields(options, 'bearer', ['verify'])
  return credentialKey({ name: 'bearer(…)', tag: '@bearer/' }, options.verify, (request) => {
    const [scheme, token] = (request.header('authorization') ?? '').trim().split(/ +/, 2)
    return scheme?.toLowerCase() === 'bearer' ? token : undefined
  })
}
