import { hmac } from '@noble/hashes/hmac.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { utf8ToBytes } from '@noble/hashes/utils.js'
import { SluiceError } from '../options/errors.ts'
import { warnOnce } from '../options/warn.ts'
import { BoundedMap } from '../runtime/bounded-map.ts'
import type { Store } from './store.ts'

/** The part of `node:crypto` that Sluice uses. A digest as a string costs half as much as bytes. */
interface NativeCrypto {
  hash?(algorithm: 'sha256', bytes: Uint8Array, encoding: 'base64url'): string
  createHmac(algorithm: 'sha256', secret: string): NativeHmac
}

interface NativeHmac {
  update(text: string, encoding: 'utf16le'): { digest(encoding: 'base64url'): string }
}

declare const process: { getBuiltinModule?(name: 'node:crypto'): NativeCrypto } | undefined
declare const Buffer: { from(text: string, encoding: 'utf16le'): Uint8Array } | undefined
declare function btoa(binary: string): string

/**
 * Several times faster than JavaScript; `undefined` if the runtime has none. It is loaded at the
 * first digest instead of imported, since other runtimes do not have the module.
 */
let native: Partial<NativeCrypto> | undefined

const digestBytes = 16
/** Characters that are full, of 6 bits each. The last one has the two bits that are left. */
const fullCharacters = Math.floor((digestBytes * 8) / 6)
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** Returns the digest that identifies a key in logs and metrics: the same as in Redis. */
export function digestOf(key: string, store: Pick<Store, 'keys'>): string {
  return store.keys?.digestOf?.(key) ?? digestIdentity(key)
}

/** Key length from which digests are cached, because hashing costs more than a decision. */
export const longKeyLength = 257
/** Every policy of a request needs the digest of its key several times. */
const longKeys = new BoundedMap<string>(16)

/**
 * Returns 128 bits of the SHA-256 of an identity, or of its HMAC with a secret, as base64url. It is
 * hashed as UTF-16, little-endian: UTF-8 would encode all lone surrogates alike, and so merge
 * different keys.
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
  native ??= typeof process === 'undefined' ? {} : (process.getBuiltinModule?.('node:crypto') ?? {})
  const { hash, createHmac } = native
  if (!hash || !createHmac || typeof Buffer === 'undefined') return portableDigest(key, secret)
  const whole =
    secret === undefined
      ? hash('sha256', Buffer.from(key, 'utf16le'), 'base64url')
      : createHmac('sha256', secret).update(key, 'utf16le').digest('base64url')
  const last = alphabet[sixBits(whole, fullCharacters) & 0b110000]
  return whole.slice(0, fullCharacters) + last
}

/** Checks the secret of digests, but never shows it. @param owner the function that takes it */
export function checkSecret(secret: unknown, owner: string): void {
  if (secret === undefined) return
  const legal = 'secret must be a string of at least 16 characters'
  if (typeof secret !== 'string' || secret === '') {
    const kind = secret === '' ? 'empty' : `a ${typeof secret}`
    throw new SluiceError('SLUICE_OPTION_INVALID', `${legal}, but is ${kind}`)
  }
  if (secret.length >= 16) return
  warnOnce(`${owner}: ${legal}, but has ${secret.length}, which can be guessed by brute force`)
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
  const text = btoa(String.fromCharCode(...bytes.subarray(0, digestBytes)))
  return text.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

/** Returns the first byte of a base64url digest. */
export function firstByteOf(text: string): number {
  return (sixBits(text, 0) << 2) | (sixBits(text, 1) >> 4)
}

/** Returns the bits of a base64url character. */
function sixBits(text: string, index: number): number {
  return alphabet.indexOf(text.charAt(index))
}
