import type { Cancellation, Check, StoreOp } from '@sluice/core'

/** One request: an operation on its checks, and the key of each in Redis. */
export interface Row {
  readonly op: StoreOp
  readonly checks: readonly Check[]
  readonly keys: readonly string[]
  /** Who waits for it, as far as the limiter says. */
  readonly cancellation?: Cancellation | undefined
  /** Whether nobody waits for it any more. */
  readonly answered?: boolean
}

/** Whether a key occurs more than once in the rows. */
export function repeatsKeys(rows: readonly Row[]): boolean {
  const [only] = rows
  if (rows.length === 1 && only?.keys.length === 1) return false
  const seen = new Set<string>()
  let count = 0
  for (let i = 0; i < rows.length; i += 1) {
    const keys = rows[i]?.keys ?? []
    for (let k = 0; k < keys.length; k += 1) seen.add(keys[k] ?? '')
    count += keys.length
  }
  return seen.size < count
}
