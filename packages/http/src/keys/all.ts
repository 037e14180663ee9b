import { isPromise, type MaybePromise } from '@sluice/core'
import { joinKey } from './join-key.ts'
import { checkResolvers, defineKey, type KeyResolver, resolveKey } from './key-resolver.ts'

/** Several identities as one, such as account and address; missing when any of them is. */
export function all<Native>(...resolvers: KeyResolver<Native>[]): KeyResolver<Native> {
  checkResolvers(resolvers, 'all(...)')
  return defineKey((native, request) => {
    const parts = resolvers.map((resolver) => resolveKey(resolver, native, request))
    return parts.some(isPromise) ? Promise.all(parts).then(joined) : joined(parts)
  })
}

function joined(parts: readonly MaybePromise<string | undefined>[]): string | undefined {
  const texts = parts.filter((part) => typeof part === 'string')
  return texts.length === parts.length ? joinKey('@all/', texts) : undefined
}
