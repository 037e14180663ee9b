import type { Check, Policy } from '@sluice/core'
import { algorithmOf, BoundedMap, digestIdentity, firstByteOf } from '@sluice/core/backend'
import { hashTags } from './hash-tags.ts'

/** Format of `sliding-log`: packed, or a textbook sorted set that redis-cli can show. */
export type Encoding = 'packed' | 'sorted-set'

export interface KeyOptions {
  readonly prefix: string
  readonly secret: string | undefined
  readonly digest: boolean
  readonly encoding: Encoding
}

/** Number of keys that are cached, and at most twice as many. */
const cachedKeys = 32_768
/** Longer identities would take too much memory. */
const longestCached = 256

/**
 * The key of a check in Redis: `<prefix>:{<tag>}:<policy>:<digest>`. The prefix ends at the first
 * brace, which it cannot contain, and no other part contains a colon, so that keys are never
 * ambiguous. The identity is hashed (128 bits, base64url), so a key has a bounded length, reveals
 * no secret and never collides. The key of its grants is the same key plus a tilde, with which no
 * other key ends.
 */
export class KeyEncoder {
  readonly #options: KeyOptions
  readonly #policies = new WeakMap<Policy, string>()
  /** Lists of one, so that `keysOf` can return them unchanged. */
  readonly #keys = new BoundedMap<readonly [string]>(cachedKeys)
  /** The policies of a request mostly count the same identity. */
  #latest: { readonly identity: string; readonly digest: string } | undefined

  constructor(options: KeyOptions) {
    this.#options = options
  }

  keysOf(checks: readonly Check[]): readonly string[] {
    const [only] = checks
    if (only && checks.length === 1) return this.#keyOf(only)
    return checks.map((check) => this.#keyOf(check)[0])
  }

  /** Returns the digest of an identity for logs: the same as in its keys, unless readable. */
  digestOf(identity: string): string {
    if (this.#latest?.identity !== identity) {
      this.#latest = { identity, digest: digestIdentity(identity, this.#options.secret) }
    }
    return this.#latest.digest
  }

  /**
   * Returns a SCAN pattern for exactly the keys of a policy: no part contains a wildcard. The keys
   * of their grants do not match, because processes will still spend the units that they hold.
   */
  patternOf(policy: Policy): string {
    return `${this.#options.prefix}:{*}:${this.#policyPart(policy)}:*[^~]`
  }

  #keyOf({ policy, key: identity, digest }: Check): readonly [string] {
    const part = this.#policyPart(policy)
    const isCached = digest === undefined && identity.length <= longestCached
    const known = isCached ? this.#keys.get(part, identity) : undefined
    if (known) return known
    const { prefix, digest: isDigested } = this.#options
    const digested = digest ?? this.digestOf(identity)
    const text = isDigested || digest !== undefined ? digested : escapeKey(identity)
    const tag = hashTags[firstByteOf(digested) % hashTags.length]
    const key = [flat(`${prefix}:{${tag}}:${part}:${text}`)] as const
    if (isCached) this.#keys.set(part, identity, key)
    return key
  }

  /** The policy and everything its stored value depends on, so that no other policy reads it. */
  #policyPart(policy: Policy): string {
    const known = this.#policies.get(policy)
    if (known !== undefined) return known
    const { keyName, keyShape, keepsEachUnit } = algorithmOf(policy)
    const isSet = keepsEachUnit && this.#options.encoding === 'sorted-set'
    const shape = [isSet ? 'zset' : keyName, keyShape(policy)].filter(Boolean)
    const part = `${policy.id}~${shape.join('-')}`
    this.#policies.set(policy, part)
    return part
  }
}

/** Returns the key of the grants of a key, as `lua/algorithms/granted-log.lua` does. */
export function grantsKey(key: string): string {
  return `${key}~`
}

/** Copies a concatenated string: V8 would walk its parts at every use. */
function flat(text: string): string {
  return typeof Buffer === 'undefined' ? text : Buffer.from(text).toString()
}

/** Escapes all but plain characters as % and their UTF-16 codes. */
function escapeKey(key: string): string {
  return key.replace(
    /[^A-Za-z0-9._@/-]/g,
    (char) => `%${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
