import { andThen, invalid, type MaybePromise, show, warnOnce } from '@sluice/core'
import type { HttpRequest } from '../adapter/request.ts'
import { identityText, tagged } from './headers.ts'
import { defineIdentity, type IdentityResolver, withEvidence } from './resolver.ts'

export interface CredentialOptions<Native = unknown> {
  /**
   * Says whether you issued this credential; may be async. Only `true` counts: any other answer means that the request has no such key, so that
   * the next resolver of `firstOf`, or `onMissingKey`, decides whom it counts for. **Without `verify`, anybody gets a full limit for each
   * credential that they make up**. `false` says that something before the limiter has refused those, so nothing is verified here.
   * @default none: every credential is believed, and a limiter warns once
   */
  verify?: ((credential: string, request: Native) => MaybePromise<boolean>) | false
}

interface Credential<Native> {
  /** What the user calls the resolver, for messages. */
  readonly name: string
  /** What its keys begin with. */
  readonly tag: string
  readonly verify: CredentialOptions<Native>['verify']
  find(request: HttpRequest): string | undefined
}

/** A resolver of credentials that clients send. */
export function credentialKey<Native>({
  name,
  tag,
  verify,
  find,
}: Credential<Native>): IdentityResolver<Native> {
  if (verify !== undefined && verify !== false && typeof verify !== 'function') {
    const legal =
      'a function that answers true or false, or false where something before the limiter refuses unknown credentials'
    throw invalid({ option: `verify of ${name}` }, verify, legal)
  }
  const resolver = defineIdentity<Native, [string]>(
    (native, request) => {
      const credential = find(request)
      if (credential === undefined || !verify) return tagged(tag, credential)
      return andThen(verify(credential, native), (answer) =>
        isVerified(answer, name) ? `${tag}${credential}` : undefined,
      )
    },
    (credential) => `${tag}${identityText(credential, `${name}.keyOf(credential)`)}`,
  )
  return withEvidence(resolver, verify === undefined ? 'unverified' : undefined)
}

/** Not the value itself: it may be what is stored beside the credential. */
function isVerified(answer: unknown, name: string): boolean {
  if (typeof answer !== 'boolean') {
    const what = typeof answer === 'object' ? 'an object' : show(answer)
    warnOnce(
      `verify of ${name} must answer true or false, but answered ${answer === null ? 'null' : what}; the credential did not count`,
      `verify of ${name}`,
    )
  }
  return answer === true
}
