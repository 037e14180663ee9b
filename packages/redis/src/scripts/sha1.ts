import { sha1 } from '@noble/hashes/legacy.js'
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js'

/** Returns the SHA-1 of a script as hexadecimal digits, by which Redis knows the script. */
export function sha1Of(script: string): string {
  return bytesToHex(sha1(utf8ToBytes(script)))
}
