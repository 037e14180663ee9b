import { andThen, invalid, type MaybePromise, show, warnOnce } from '@sluice/core'
import type { HttpRequest } from '../http-request.ts'
import { identityText, tagged } from './header.ts'
import { defineIdentity, type IdentityResolver } from './key-resolver.ts'

export interface CredentialOptions<Native = unknown> {
  /**
   * Says whether you issued this credential; may be async. Only `true` counts: any other answer means that the request has no such key, so that
   * the next resolver of `firstOf`, or `onMissingKey`, decides whom it counts for. **Without `verify`, anybody gets a full limit for each
   * credential that they make up**, unless something before the limiter has refused those.
   * @default none: every credential is believed
   */
  verify?: (credential: string, request: Native) => MaybePromise<boolean>
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
  if (verify !== undefined && typeof verify !== 'function') {
    throw invalid({ option: `verify of ${name}` }, verify, 'a function that answers true or false')
  }
  return defineIdentity(
    (native, request) => {
      const credential = find(request)
      if (credential === undefined || !verify) return tagged(tag, credential)
      return andThen(verify(credential, native), (answer) =>
        isVerified(answer, name) ? `${tag}${credential}` : undefined,
      )
    },
    (credential) => `${tag}${identityText(credential, `${name}.keyOf(credential)`)}`,
  )
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
