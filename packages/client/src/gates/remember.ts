import { clockMs } from '../time/clock.ts'

interface Entry<T> {
  readonly id: string
  readonly value: T
  /** Whether an entry should be kept as long as there are others. */
  isKept?(value: T): boolean
}

/** How many things of a kind are remembered. */
const maxEntries = 1000

/** Puts an entry at the end of a map; where that makes too many, takes the oldest one away that need not be kept. */
export function remember<T>(map: Map<string, T>, { id, value, isKept }: Entry<T>): void {
  map.delete(id)
  if (map.size >= maxEntries) map.delete(leastWanted(map, isKept) ?? id)
  map.set(id, value)
}

function leastWanted<T>(map: Map<string, T>, isKept?: Entry<T>['isKept']): string | undefined {
  let oldest: string | undefined
  for (const [id, value] of map) {
    if (!isKept?.(value)) return id
    oldest ??= id
  }
  return oldest
}

/** Whether something matters for the time to come. */
export function isBusyNow(one: { isBusy(nowMs: number): boolean }): boolean {
  return one.isBusy(clockMs())
}
