import { seededRandom, shuffled } from './random.ts'

/** Identities, in an order in which neighbours have nothing to do with each other. */
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
