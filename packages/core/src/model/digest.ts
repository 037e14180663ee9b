import { hmac } from '@noble/hashes/hmac.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { utf8ToBytes } from '@noble/hashes/utils.js'
import { SluiceError } from '../options/errors.ts'
import { warnOnce } from '../options/warn.ts'
import { BoundedMap } from '../runtime/bounded-map.ts'
import type { Store } from './store.ts'

/** The part that is used of `node:crypto`. A digest as text costs half as much as one in bytes. */
interface NativeCrypto {
  hash?(algorithm: 'sha256', bytes: Uint8Array, encoding: 'base64url'): string
  createHmac(
    algorithm: 'sha256',
    secret: string,
  ): {
    update(bytes: Uint8Array): { digest(encoding: 'base64url'): string }
  }
}

declare const process: { getBuiltinModule?(name: 'node:crypto'): NativeCrypto } | undefined
declare const Buffer: { from(text: string, encoding: 'utf16le'): Uint8Array } | undefined

/**
 * Several times faster than code in JavaScript; `undefined` where the runtime has none. It is not
 * imported, since other runtimes have no such module.
 */
const native =
  typeof process === 'undefined' ? undefined : process.getBuiltinModule?.('node:crypto')

const digestBytes = 16
/** Characters that are full, of 6 bits each. The last one has the two bits that are left. */
const fullCharacters = Math.floor((digestBytes * 8) / 6)
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

const valueOfCode = Array.from({ length: 128 }, (_, code) =>
  Math.max(0, alphabet.indexOf(String.fromCharCode(code))),
)

/**
 * Returns the text that stands for a key in logs and metrics. It is the store's own, so that it
 * agrees with the keys in Redis.
 */
export function digestOf(key: string, store: Pick<Store, 'keys'>): string {
  return store.keys?.digestOf?.(key) ?? digestIdentity(key)
}

/** The length from which digests of keys are kept, because they cost more than a decision. */
export const longKeyLength = 257
/** Every policy of a request needs the digest of its key several times. */
const longKeys = new BoundedMap<string>(16)

/**
 * Returns 128 bits of the SHA-256 of an identity, or of its HMAC with a secret, as base64url. It is
 * hashed in UTF-16, little-endian: UTF-8 would make one character of all lone surrogates, and one
 * key of two.
 */
export function digestIdentity(key: string, secret?: string): string {
  if (key.length < longKeyLength) return digestNow(key, secret)
  const known = longKeys.get(secret ?? '', key)
  if (known !== undefined) return known
  const digest = digestNow(key, secret)
  longKeys.set(secret ?? '', key, digest)
  return digest
}

function digestNow(key: string, secret: string | undefined): string {
  if (!native?.hash || typeof Buffer === 'undefined') return portableDigest(key, secret)
  const utf16 = Buffer.from(key, 'utf16le')
  const whole =
    secret === undefined
      ? native.hash('sha256', utf16, 'base64url')
      : native.createHmac('sha256', secret).update(utf16).digest('base64url')
  const last = alphabet[sixBits(whole, fullCharacters) & 0b110000]
  return whole.slice(0, fullCharacters) + last
}

/** Checks the secret of digests, and never shows it. @param owner the function that takes it */
export function checkSecret(secret: unknown, owner: string): void {
  if (secret === undefined) return
  const legal = 'secret must be text of at least 16 characters'
  if (typeof secret !== 'string' || secret === '') {
    const kind = secret === '' ? 'empty' : `a ${typeof secret}`
    throw new SluiceError('SLUICE_OPTION_INVALID', `${legal}, but is ${kind}`)
  }
  if (secret.length >= 16) return
  warnOnce(`${owner}: ${legal}, but has ${secret.length}, which can be found by trying`)
}

/** The same digest in a runtime without `node:crypto`. */
export function portableDigest(key: string, secret?: string): string {
  const utf16 = new Uint8Array(key.length * 2)
  for (let i = 0; i < key.length; i += 1) {
    const code = key.charCodeAt(i)
    utf16[2 * i] = code & 0xff
    utf16[2 * i + 1] = code >> 8
  }
  const bytes = secret === undefined ? sha256(utf16) : hmac(sha256, utf8ToBytes(secret), utf16)
  return base64Url(bytes.subarray(0, digestBytes))
}

/** Reads the first byte of a digest from its text. */
export function firstByteOf(text: string): number {
  return ((sixBits(text, 0) << 2) | (sixBits(text, 1) >> 4)) & 0xff
}

/** The bits that a character of base64url stands for. */
function sixBits(text: string, index: number): number {
  return valueOfCode[text.charCodeAt(index)] ?? 0
}

/** Encoded by hand: not every runtime can write base64url. */
function base64Url(bytes: Uint8Array): string {
  let text = ''
  for (let bit = 0; bit < bytes.length * 8; bit += 6) {
    const pair = ((bytes[bit >> 3] ?? 0) << 8) | (bytes[(bit >> 3) + 1] ?? 0)
    text += alphabet[(pair >> (10 - (bit % 8))) & 63]
  }
  return text
}
