/**
 * The FNV-1a hash of a string: 32 bits, the same in every process. Only for spreading keys, never
 * if an attacker could gain from a collision.
 * @param from the first character that counts
 */
export function fnv1a(text: string, from = 0): number {
  let hash = 0x811c9dc5
  for (let i = from; i < text.length; i += 1)
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash >>> 0
}

/** Maps strings evenly to numbers from 0 to below 1. FNV-1a alone leaves similar strings close. */
export function fractionOf(text: string): number {
  // The finaliser of MurmurHash3.
  let hash = fnv1a(text)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32
}
