import { sha256 } from '@noble/hashes/sha2.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'

const longest = 256

/**
 * The key itself up to 256 characters; else its SHA-256, padded to 257, so that a long key takes no more room and meets
 * no short one.
 */
export function boundedKey(key: string): string {
  if (key.length <= longest) return key
  return bytesToHex(sha256(utf8ToBytes(JSON.stringify(key)))).padStart(longest + 1, '#')
}
