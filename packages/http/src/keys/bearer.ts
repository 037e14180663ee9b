import { knownFields } from '@sluice/core'
import { type CredentialOptions, credentialKey } from './credential.ts'
import type { IdentityResolver } from './resolver.ts'

/**
 * The token of `Authorization: Bearer <token>`; missing with another scheme. **Anybody can make up tokens**: give `verify`, or refuse
 * unknown ones before the limiter; else each made-up token gets a full limit of its own.
 * @example
 * key: firstOf(bearer({ verify: async (token) => (await sessionOf(token)) !== undefined }), ip())
 */
export function bearer<Native>(options: CredentialOptions<Native> = {}): IdentityResolver<Native> {
  knownFields(options, 'bearer', ['verify'])
  return credentialKey({
    name: 'bearer(…)',
    tag: '@bearer/',
    verify: options.verify,
    find(request) {
      const [scheme, token] = (request.header('authorization') ?? '').trim().split(/ +/, 2)
      return scheme?.toLowerCase() === 'bearer' ? token : undefined
    },
  })
}
