import { andThen, type MaybePromise } from '@sluice/core'
import type { HttpRequest } from '../adapter/request.ts'
import {
  checkResolvers,
  defineKey,
  evidenceOf,
  type KeyResolver,
  resolveKey,
  withEvidence,
} from './resolver.ts'

/** The first identity that a request has, such as its API key, else its address. */
export function firstOf<Native>(...resolvers: KeyResolver<Native>[]): KeyResolver<Native> {
  checkResolvers(resolvers, 'firstOf(...)')
  const from = (
    index: number,
    native: Native,
    request: HttpRequest,
  ): MaybePromise<string | undefined> => {
    const resolver = resolvers[index]
    if (!resolver) return undefined
    return andThen(resolveKey(resolver, native, request), (key) => {
      return key ?? from(index + 1, native, request)
    })
  }
  return withEvidence(
    defineKey((native: Native, request) => from(0, native, request)),
    evidenceOf(...resolvers),
  )
}
