import { given, knownFields } from '@sluice/core'
import { type CredentialOptions, credentialKey } from './credential.ts'
import { headerName, present } from './headers.ts'
import type { IdentityResolver } from './resolver.ts'

export interface ApiKeyOptions<Native = unknown> extends CredentialOptions<Native> {
  /** The header that carries it. @default 'x-api-key' */
  header?: string
}

/**
 * The API key of a request. **Anybody can make up API keys**: give `verify`, or refuse unknown ones before the limiter; else each made-up
 * key gets a full limit of its own. Count logins by address and account, never by this alone.
 * @example
 * key: firstOf(apiKey({ verify: (key) => issued.has(key) }), ip())
 */
export function apiKey<Native>(options: ApiKeyOptions<Native> = {}): IdentityResolver<Native> {
  knownFields(options, 'apiKey', ['header', 'verify'])
  const field = headerName(given(options.header, 'x-api-key'), 'header')
  return credentialKey({
    name: 'apiKey(…)',
    tag: '@key/',
    verify: options.verify,
    find: (request) => present(request, field),
  })
}
