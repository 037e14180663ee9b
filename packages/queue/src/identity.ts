import { andThen, type MaybePromise } from '@sluice/core'
import { type HttpRequest, ipKey, type KeyResolver, resolveKey } from '@sluice/http'

/** Whose a request is. One without a key is its address': never one identity for all of them. */
export function resolveIdentity<Native>(
  resolver: KeyResolver<Native>,
  native: Native,
  request: HttpRequest,
): MaybePromise<string> {
  return andThen(resolveKey(resolver, native, request), (key) => key ?? ipKey(request.ip ?? ''))
}
