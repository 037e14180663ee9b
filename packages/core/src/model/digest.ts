import { hmac } from '@noble/hashes/hmac.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { utf8ToBytes } from '@noble/hashes/utils.js'
import { SluiceError } from '../options/errors.ts'
import { warnOnce } from '../options/warn.ts'
import { BoundedMap } from '../runtime/bounded-map.ts'
import type { Store } from './store.ts'

/** The part of `node:crypto` that Sluice uses. A digest as a string costs half as much as bytes. */
interface NativeCrypto {
  hash?(algorithm: 'sha256', bytes: Uint8Array, encoding: 'base64url' | 'hex'): string
}

interface Bytes extends Uint8Array {
  write(text: string, offset: number, encoding: 'utf16le' | 'hex'): number
}

interface NativeBuffer {
  from(text: string, encoding: 'utf16le'): Bytes
  alloc(bytes: number): Bytes
  concat(parts: readonly Bytes[], bytes: number): Bytes
}

declare const process: { getBuiltinModule?(name: 'node:crypto'): NativeCrypto } | undefined
declare const Buffer: NativeBuffer | undefined
declare function btoa(binary: string): string

/**
 * Several times faster than JavaScript; `undefined` if the runtime has none. It is loaded at the
 * first digest instead of imported, since other runtimes do not have the module.
 */
let native: NativeCrypto | undefined

const digestBytes = 16
/** Characters that are full, of 6 bits each. The last one has the two bits that are left. */
const fullCharacters = Math.floor((digestBytes * 8) / 6)
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

const valueOfCode = Array.from({ length: 128 }, (_, code) =>
  Math.max(0, alphabet.indexOf(String.fromCharCode(code))),
)

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
  if (!native.hash || typeof Buffer === 'undefined') return portableDigest(key, secret)
  const { hash } = native
  const whole =
    secret === undefined
      ? hash('sha256', Buffer.from(key, 'utf16le'), 'base64url')
      : hmacOf(secret, hash, Buffer)(key)
  const last = alphabet[sixBits(whole, fullCharacters) & 0b110000]
  return whole.slice(0, fullCharacters) + last
}

const blockBytes = 64
let latest: { readonly secret: string; readonly digest: (key: string) => string } | undefined

/**
 * Returns the HMAC of a secret, as RFC 2104 writes it out: two calls of `hash` over blocks that are
 * made once take 0.48 of the time of `createHmac`.
 */
function hmacOf(
  secret: string,
  hash: NonNullable<NativeCrypto['hash']>,
  buffer: NativeBuffer,
): (key: string) => string {
  if (latest?.secret === secret) return latest.digest
  const bytes = utf8ToBytes(secret)
  const padded = bytes.length > blockBytes ? sha256(bytes) : bytes
  const inner = buffer.alloc(blockBytes + 2 * longKeyLength)
  const outer = buffer.alloc(blockBytes + sha256.outputLen)
  for (let i = 0; i < blockBytes; i += 1) {
    inner[i] = (padded[i] ?? 0) ^ 0x36
    outer[i] = (padded[i] ?? 0) ^ 0x5c
  }
  const digest = (key: string): string => {
    const end = blockBytes + 2 * key.length
    const message = end > inner.length ? buffer.concat([inner], end) : inner
    message.write(key, blockBytes, 'utf16le')
    outer.write(hash('sha256', message.subarray(0, end), 'hex'), blockBytes, 'hex')
    return hash('sha256', outer, 'base64url')
  }
  latest = { secret, digest }
  return digest
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
  return ((sixBits(text, 0) << 2) | (sixBits(text, 1) >> 4)) & 0xff
}

/** Returns the bits of a base64url character. */
function sixBits(text: string, index: number): number {
  return valueOfCode[text.charCodeAt(index)] ?? 0
}
