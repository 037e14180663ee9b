import { type MaybePromise, withDeadline } from '@sluice/core'

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

  await endsInTime(Promise.all(Array.from({ length: inFlight }, worker)), durationMs)
  const elapsedMs = performance.now() - startedAt
  return { checks: latenciesMs.length, allowed, elapsedMs, latenciesMs }
}

/** Rejects ten seconds after a round should have ended, so that one subject cannot hold up the whole benchmark. */
export function endsInTime<T>(work: Promise<T>, durationMs: number): Promise<T> {
  return withDeadline(work, durationMs + 10_000, () => new Error(`no end of ${durationMs} ms`))
}
