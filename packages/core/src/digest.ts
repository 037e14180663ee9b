import { hmac } from '@noble/hashes/hmac.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { utf8ToBytes } from '@noble/hashes/utils.js'
import type { Store } from './store.ts'

/** The digest of an identity. */
export interface IdentityDigest {
  /** The first of its bytes, which its text has too. */
  readonly firstByte: number
  /** 128 bits as base64url. */
  readonly text: string
}

/** The part that is used of Node's buffers. */
interface Bytes extends Uint8Array {
  toString(encoding?: 'base64url', from?: number, to?: number): string
}

/** The part that is used of `node:crypto`. */
interface NativeCrypto {
  hash?(algorithm: 'sha256', bytes: Bytes, encoding: 'buffer'): Bytes
  createHmac(
    algorithm: 'sha256',
    secret: string,
  ): {
    update(bytes: Bytes): { digest(): Bytes }
  }
}

declare const process: { getBuiltinModule?(name: 'node:crypto'): NativeCrypto } | undefined
declare const Buffer: { from(text: string, encoding: 'utf16le'): Bytes } | undefined

/**
 * Several times faster than code in JavaScript; `undefined` where the runtime has none. It is not
 * imported, since other runtimes have no such module.
 */
const native =
  typeof process === 'undefined' ? undefined : process.getBuiltinModule?.('node:crypto')

const digestBytes = 16
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/**
 * Returns the text that stands for a key in logs and metrics. It is the store's own, so that it
 * agrees with the keys in Redis.
 */
export function digestOf(key: string, store: Pick<Store, 'digestOf'>): string {
  return store.digestOf?.(key) ?? digestIdentity(key).text
}

/**
 * Digests an identity by SHA-256, or by its HMAC with a secret. It is hashed in UTF-16,
 * little-endian: UTF-8 would make one character of all lone surrogates, and one key of two.
 */
export function digestIdentity(key: string, secret?: string): IdentityDigest {
  if (!native?.hash || typeof Buffer === 'undefined') return portableDigest(key, secret)
  const utf16 = Buffer.from(key, 'utf16le')
  const bytes =
    secret === undefined
      ? native.hash('sha256', utf16, 'buffer')
      : native.createHmac('sha256', secret).update(utf16).digest()
  return { firstByte: bytes[0] ?? 0, text: bytes.toString('base64url', 0, digestBytes) }
}

/** The same digest in a runtime without `node:crypto`. */
export function portableDigest(key: string, secret?: string): IdentityDigest {
  const utf16 = new Uint8Array(key.length * 2)
  for (let i = 0; i < key.length; i += 1) {
    const code = key.charCodeAt(i)
    utf16[2 * i] = code & 0xff
    utf16[2 * i + 1] = code >> 8
  }
  const bytes = secret === undefined ? sha256(utf16) : hmac(sha256, utf8ToBytes(secret), utf16)
  return { firstByte: bytes[0] ?? 0, text: base64Url(bytes.subarray(0, digestBytes)) }
}

/** Reads the first byte of a digest from its text. */
export function firstByteOf(text: string): number {
  const first = alphabet.indexOf(text[0] ?? '')
  const second = alphabet.indexOf(text[1] ?? '')
  return ((first << 2) | (second >> 4)) & 0xff
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
