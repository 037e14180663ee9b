/** What a wait grows to where the server tells none, or none that is one. */
const maxIntervalMs = 30_000

/** The first wait where the server tells 0, or an instant that is over. */
const leastMs = 200

const growth = 1.5

/** What is added to each wait at most: this, or a tenth of it. */
const jitterMs = 100

/** How long to wait before each poll, in turn: as told, or longer and longer. */
export function pollWaits(intervalMs: number): (toldMs: number | undefined) => number {
  let untoldMs = Math.max(1, intervalMs)
  let floorMs = leastMs
  return (toldMs) => {
    const [nowUntoldMs, nowFloorMs] = [untoldMs, floorMs]
    untoldMs = grown(untoldMs)
    if (toldMs === undefined) return nowUntoldMs
    floorMs = toldMs < leastMs ? grown(floorMs) : leastMs
    return toldMs < leastMs ? nowFloorMs : toldMs
  }
}

/** What is added to a wait, so that those who were told the same do not come together. */
export function pollJitterMs(waitMs: number, roomMs: number): number {
  return Math.random() * Math.min(roomMs, Math.max(jitterMs, waitMs / 10))
}

function grown(waitMs: number): number {
  return Math.min(maxIntervalMs, waitMs * growth)
}
