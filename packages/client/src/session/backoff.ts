import type { Settings } from '../client-options.ts'

/** The wait after the `failures`-th failure in a row where nothing is told: full jitter, from nothing to the whole of it. */
export function backoffMs(failures: number, settings: Settings): number {
  return Math.random() * Math.min(settings.maxBackoffMs, settings.backoffMs * doubled(failures))
}

/** What is added to a wait that was told, so that clients that were told the same do not return together. */
export function jitterMs(toldMs: number, refusals: number, settings: Settings): number {
  const spanMs = Math.max(settings.jitterMs, toldMs / 10) * doubled(refusals)
  const roomMs = Math.max(0, settings.maxWaitMs - toldMs)
  return Math.random() * Math.min(settings.maxBackoffMs, spanMs, roomMs)
}

/** 1 the first time, then 2, 4 and so on, never so much that a product with 0 is none. */
function doubled(times: number): number {
  return 2 ** Math.min(times - 1, 40)
}
