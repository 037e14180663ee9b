import { hmac } from '@noble/hashes/hmac.js'
import { sha1 as portableSha1 } from '@noble/hashes/legacy.js'
import { sha256 } from '@noble/hashes/sha2.js'

/** The digest of an identity. */
interface IdentityDigest {
  /** The first of its bytes, which its text has too. */
  readonly firstByte: number
  /** 128 bits as base64url. */
  readonly text: string
}

const digestBytes = 16
const digestLength = 22
const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** Several times faster than code in JavaScript. Not imported: other runtimes have no such module. */
const native = nativeCrypto()

function nativeCrypto(): typeof import('node:crypto') | undefined {
  if (typeof process === 'undefined' || typeof Buffer === 'undefined') return undefined
  const crypto = process.getBuiltinModule?.('node:crypto')
  return typeof crypto?.hash === 'function' ? crypto : undefined
}

/** Digests an identity by SHA-256, or by its HMAC with a secret. */
export function digestIdentity(key: string, secret: string | undefined): IdentityDigest {
  if (!native) return portableDigestIdentity(key, secret)
  // UTF-8 would make one character of all lone surrogates, and one key of two.
  const utf16 = Buffer.from(key, 'utf16le')
  const bytes =
    secret === undefined
      ? native.hash('sha256', utf16, 'buffer')
      : native.createHmac('sha256', secret).update(utf16).digest()
  return { firstByte: bytes[0] ?? 0, text: bytes.toString('base64url', 0, digestBytes) }
}

/** The same digest in a runtime without `node:crypto`. */
export function portableDigestIdentity(key: string, secret: string | undefined): IdentityDigest {
  const utf16 = new DataView(new ArrayBuffer(2 * key.length))
  for (let i = 0; i < key.length; i += 1) utf16.setUint16(2 * i, key.charCodeAt(i), true)
  const message = new Uint8Array(utf16.buffer)
  const bytes =
    secret === undefined ? sha256(message) : hmac(sha256, new TextEncoder().encode(secret), message)
  const base64 = btoa(String.fromCharCode(...bytes.subarray(0, digestBytes)))
  const text = base64.replaceAll('+', '-').replaceAll('/', '_').slice(0, digestLength)
  return { firstByte: bytes[0] ?? 0, text }
}

/** Reads the first byte of a digest from its text. */
export function firstByteOf(text: string): number {
  const [first = 0, second = 0] = [...text.slice(0, 2)].map((char) => alphabet.indexOf(char))
  return ((first << 2) | (second >> 4)) & 0xff
}

/** Returns the SHA-1 of a script as hexadecimal digits, by which Redis knows the script. */
export function sha1Of(script: string): string {
  if (native) return native.createHash('sha1').update(script).digest('hex')
  const bytes = portableSha1(new TextEncoder().encode(script))
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
