interface Entry<T> {
  readonly id: string
  readonly value: T
  /** How many entries there may be. */
  readonly max: number
  /** Whether an entry should be kept as long as there are others. */
  isKept?(value: T): boolean
}

/** Puts an entry at the end of a map; where that makes too many, takes the oldest one away that need not be kept. */
export function remember<T>(map: Map<string, T>, { id, value, max, isKept }: Entry<T>): void {
  map.delete(id)
  if (map.size >= max) map.delete(leastWanted(map, isKept))
  map.set(id, value)
}

function leastWanted<T>(map: Map<string, T>, isKept?: (value: T) => boolean): string {
  let oldest: string | undefined
  for (const [id, value] of map) {
    if (!isKept?.(value)) return id
    oldest ??= id
  }
  return oldest ?? ''
}
