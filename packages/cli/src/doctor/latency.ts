import { type Finding, found } from './finding.ts'
import type { RedisLink } from './redis-link.ts'

const samples = 50
const budgetMs = 1_500
/** Median latencies (ms) at which users notice checks, and at which deadlines are missed. */
const slowMs = 10
const tooSlowMs = 50

export async function latency(link: RedisLink): Promise<Finding> {
  const check = found('latency')
  const times: number[] = []
  const startedAt = performance.now()
  while (times.length < samples && performance.now() - startedAt < budgetMs) {
    const askedAt = performance.now()
    // An echo needs no key and no data permissions.
    await link.ask('PING')
    times.push(performance.now() - askedAt)
  }
  const sorted = times.toSorted((a, b) => a - b)
  const median = sorted[Math.floor(sorted.length / 2)] ?? 0
  const max = sorted.at(-1) ?? 0
  const seen = `median ${ms(median)}, at most ${ms(max)} in ${times.length} round trips`
  if (median < slowMs) return check.ok(seen)
  const fix =
    'run Redis near the API (same zone), and find out what slows it down: redis-cli SLOWLOG GET, redis-cli --latency'
  if (median < tooSlowMs) return check.warning(seen, fix)
  return check.error(
    `${seen}: many checks miss the deadline of 100 ms, and the failure mode decides`,
    `${fix}; until then raise deadlineMs`,
  )
}

function ms(value: number): string {
  return `${Number(value.toPrecision(2))} ms`
}
