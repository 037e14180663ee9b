import type { Check, Policy } from '@sluice/core'
import { algorithmOf, digestIdentity, firstByteOf } from '@sluice/core/backend'
import { hashTags } from './hash-tags.ts'

/** Format of `sliding-log`: packed, or a textbook sorted set that redis-cli can show. */
export type Encoding = 'packed' | 'sorted-set'

export interface KeyOptions {
  readonly prefix: string
  readonly secret: string | undefined
  readonly digest: boolean
  readonly encoding: Encoding
}

/** Size of each of two generations: a used identity moves from the old to the young one. */
const identitiesOfGeneration = 16_384
/** Keeps a caller that creates endless policies from filling the cache. */
const mostKeysOfIdentity = 16
/** Longer identities would take too much memory. */
const longestCached = 256

interface Identity {
  readonly tag: string
  readonly text: string
  /** The policy that was used last: most identities have only one. */
  policy: Policy | undefined
  /** A list of one, so that `keysOf` can return it unchanged. */
  key: readonly [string]
  /** All keys so far, if it has several. */
  keys: Map<string, readonly [string]> | undefined
}

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
  #young = new Map<string, Identity>()
  #old = new Map<string, Identity>()

  constructor(options: KeyOptions) {
    this.#options = options
  }

  keysOf(checks: readonly Check[]): readonly string[] {
    const [only] = checks
    if (only && checks.length === 1) return this.#keyOf(only)
    return checks.map((check) => this.#keyOf(check)[0])
  }

  /** Returns the digest of an identity for logs: the same as in its keys, unless readable. */
  digestOf(key: string): string {
    return this.#options.digest
      ? this.#identityOf(key).text
      : digestIdentity(key, this.#options.secret)
  }

  /**
   * Returns a SCAN pattern for exactly the keys of a policy: no part contains a wildcard. The keys
   * of their grants do not match, because processes will still spend the units that they hold.
   */
  patternOf(policy: Policy): string {
    return `${this.#options.prefix}:{*}:${this.#policyPart(policy)}:*[^~]`
  }

  #keyOf({ policy, key, digest }: Check): readonly [string] {
    if (digest !== undefined) return [this.#join(hashTagOf(digest), policy, digest)]
    const identity = this.#identityOf(key)
    if (identity.policy === policy) return identity.key
    if (identity.policy) this.#keep(identity, identity.policy)
    const part = this.#policyPart(policy)
    identity.key = identity.keys?.get(part) ?? [
      flat(this.#join(identity.tag, policy, identity.text)),
    ]
    identity.policy = policy
    return identity.key
  }

  #keep(identity: Identity, policy: Policy): void {
    identity.keys ??= new Map()
    if (identity.keys.size >= mostKeysOfIdentity) return
    identity.keys.set(this.#policyPart(policy), identity.key)
  }

  #join(tag: string, policy: Policy, text: string): string {
    return `${this.#options.prefix}:{${tag}}:${this.#policyPart(policy)}:${text}`
  }

  #identityOf(key: string): Identity {
    const young = this.#young.get(key)
    if (young) return young
    if (key.length > longestCached) return this.#digest(key)
    const identity = this.#old.get(key) ?? this.#digest(key)
    if (this.#young.size >= identitiesOfGeneration) {
      this.#old = this.#young
      this.#young = new Map()
    }
    this.#young.set(key, identity)
    return identity
  }

  #digest(key: string): Identity {
    const { secret, digest } = this.#options
    const digested = digestIdentity(key, secret)
    const text = digest ? digested : escapeKey(key)
    return { tag: hashTagOf(digested), text, policy: undefined, key: [''], keys: undefined }
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

function hashTagOf(digest: string): string {
  return hashTags[firstByteOf(digest) % hashTags.length] ?? ''
}

/** Escapes all but plain characters as % and their UTF-16 codes. */
function escapeKey(key: string): string {
  return key.replace(
    /[^A-Za-z0-9._@/-]/g,
    (char) => `%${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
