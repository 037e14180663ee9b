import type { MaybePromise } from '@sluice/core'

/** How much longer than its duration a round may take before it counts as hung. */
const patienceMs = 10_000

/** So many workers, each of which asks again as soon as it was answered, until the time is over. The same for every subject. */
export async function closedLoop({
  inFlight,
  durationMs,
  check,
}: {
  inFlight: number
  durationMs: number
  /** Resolves to whether it was allowed. */
  check(): MaybePromise<boolean>
}) {
  const latenciesMs: number[] = []
  let allowed = 0
  const startedAt = performance.now()
  const endsAt = startedAt + durationMs

  async function worker(): Promise<void> {
    for (let now = performance.now(); now < endsAt; ) {
      if (await check()) allowed += 1
      const then = performance.now()
      latenciesMs.push(then - now)
      now = then
    }
  }

  await endsInTime(Promise.all(Array.from({ length: inFlight }, worker)), durationMs + patienceMs)
  const elapsedMs = performance.now() - startedAt
  return { checks: latenciesMs.length, allowed, elapsedMs, latenciesMs }
}

/** Rejects when a round hangs, so that one subject cannot hold up the whole benchmark. */
export async function endsInTime<T>(work: Promise<T>, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end after ${timeoutMs} ms`)), timeoutMs)
  })
  try {
    return await Promise.race([work, timeout])
  } finally {
    clearTimeout(timer)
  }
}
