import { isPromise, type MaybePromise, show, warnOnce } from '@sluice/core'
import { defineKey, type KeyResolver } from './key-resolver.ts'

/** What a database calls somebody: text, or a whole number, which counts as its digits. `undefined`, null, '' and NaN: nobody. */
export type Id = string | number | bigint | null | undefined

/** A resolver of ids, whose keys are `@kind/id`: ids of two kinds never meet. */
export function idKey<Native>(
  kind: 'user' | 'tenant',
  find: (native: Native) => MaybePromise<Id>,
): KeyResolver<Native> {
  const keyOf = (id: Id): string | undefined => {
    const text = textOf(id, kind)
    return text === undefined ? undefined : `@${kind}/${text}`
  }
  return defineKey((native) => {
    const id = find(native)
    return isPromise(id) ? id.then(keyOf) : keyOf(id)
  })
}

function textOf(id: Id, kind: string): string | undefined {
  if (typeof id === 'string') return id === '' ? undefined : id
  if (typeof id === 'bigint' || Number.isSafeInteger(id)) return String(id)
  if (id === undefined || id === null || Number.isNaN(id)) return undefined
  warnOnce(
    `the function of ${kind}(…) yielded ${typeof id === 'number' ? show(id) : `a ${typeof id}`}, which is no id and counts as ` +
      `missing: it must be text, a bigint, or a whole number up to 2^53 − 1, beyond which two ids would be one`,
    `id of ${kind}`,
  )
  return undefined
}
