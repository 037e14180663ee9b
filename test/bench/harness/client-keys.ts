export function clientKeys(count: number): string[] {
  const names = Array.from({ length: count }, (_, index) => `client-${index}`)
  return shuffled(names, seededRandom(count))
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

/** A seeded generator of numbers in [0, 1) (mulberry32), so that every run meets the same traffic. */
function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const result = [...items]
  for (let i = result.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1))
    const [a, b] = [result[i], result[j]]
    if (a !== undefined && b !== undefined) {
      result[i] = b
      result[j] = a
    }
  }
  return result
}
