import type { Settings } from './options.ts'

/** Wait (ms) after the `failures`-th failure in a row, if the server sends none: full jitter. */
export function backoffMs(failures: number, settings: Settings): number {
  return Math.random() * Math.min(settings.maxBackoffMs, settings.backoffMs * doubled(failures))
}

/** Jitter (ms) on a wait from a server. Clients with the same wait must not return together. */
export function jitterMs(toldMs: number, refusals: number, settings: Settings): number {
  const spanMs = Math.max(settings.jitterMs, toldMs / 10) * doubled(refusals)
  const roomMs = Math.max(0, settings.maxWaitMs - toldMs)
  return Math.random() * Math.min(settings.maxBackoffMs, spanMs, roomMs)
}

/** Returns 1, then 2, 4 and so on. It stays finite, so that a product with 0 is 0. */
function doubled(times: number): number {
  return 2 ** Math.min(times - 1, 40)
}

/** Maximum wait (ms) between polls if the server sends none. */
const maxIntervalMs = 30_000

/** First wait (ms) if the server sends 0, or an instant in the past. */
const minWaitMs = 200

const growth = 1.5

/** Maximum jitter (ms) on the wait before a poll; a tenth of the wait if that is more. */
const maxPollJitterMs = 100

/** Returns the wait (ms) before each poll: the server's, or a growing one. */
export function pollWaits(intervalMs: number): (toldMs: number | undefined) => number {
  let untoldMs = Math.max(1, intervalMs)
  let floorMs = minWaitMs
  return (toldMs) => {
    const [nowUntoldMs, nowFloorMs] = [untoldMs, floorMs]
    untoldMs = grown(untoldMs)
    if (toldMs === undefined) return nowUntoldMs
    floorMs = toldMs < minWaitMs ? grown(floorMs) : minWaitMs
    return toldMs < minWaitMs ? nowFloorMs : toldMs
  }
}

/** Jitter (ms) on the wait before a poll. */
export function pollJitterMs(waitMs: number, roomMs: number): number {
  return Math.random() * Math.min(roomMs, Math.max(maxPollJitterMs, waitMs / 10))
}

function grown(waitMs: number): number {
  return Math.min(maxIntervalMs, waitMs * growth)
}
