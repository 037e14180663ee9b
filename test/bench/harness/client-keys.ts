/** A prime that divides no number of keys: each key occurs once, and not in the order of the numbers. */
const stride = 7_919

export function clientKeys(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `client-${(index * stride) % count}`)
}

/** Goes round the keys, so that every key is asked as often as any other: with one key, a hot key. */
export function inTurn(keys: readonly string[]): () => string {
  let next = 0
  return () => {
    const key = keys[next] ?? ''
    next = next + 1 === keys.length ? 0 : next + 1
    return key
  }
}
