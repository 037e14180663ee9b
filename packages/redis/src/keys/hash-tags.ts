/**
 * The 64 hash tags of keys. The Cluster slot of tag i is 256 · i + 128, so tags spread evenly over
 * any number of masters, and a batch splits into at most 64 calls.
 */
export const hashTags: readonly string[] = [
  '53t j3j if5 kec 574 74b akm 6bk 96a frw 0ip oin d1i 38o 0m0 2nf',
  'he6 box 40w c9q hav 7ah 447 67a 1js fcu 0xr gqt 1n3 3me e2j gu4',
  '712 52d cmk 4dm 75r h5l 02bb ice 3y7 1za 2k6 8ax wu7 931 2ov 8e8',
  '7d8 5gn 621 41g jc0 qkn 66q i6o 3h5 1kc 2z4 0yb 3lu des o94 802',
].flatMap((row) => row.split(' '))

/** Returns the hash tag of one of our keys: prefixes contain no braces. */
export function hashTagOf(key: string): string {
  return key.slice(key.indexOf('{') + 1, key.indexOf('}'))
}

const slots = new Map(hashTags.map((tag, index) => [tag, 256 * index + 128]))

export function slotOf(key: string): number {
  return slots.get(hashTagOf(key)) ?? -1
}
