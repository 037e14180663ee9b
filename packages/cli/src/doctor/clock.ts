import { type Finding, found } from './finding.ts'
import { isRefused, type RedisLink, reasonOf } from './redis-link.ts'

/** Smaller differences are tolerated; `@sluice/redis` reports larger ones. */
const toleratedSkewMs = 1_000
/** The sample with the shortest round trip is the most accurate. */
const samples = 5

export async function clock(link: RedisLink): Promise<Finding> {
  const check = found('clock')
  let best = { rttMs: Number.POSITIVE_INFINITY, skewMs: 0 }
  try {
    for (let i = 0; i < samples; i += 1) {
      const startedAt = performance.now()
      const asked = Date.now()
      const answer = await link.ask('TIME')
      const rttMs = performance.now() - startedAt
      const serverMs = timeOf(answer)
      if (serverMs === undefined) return check.note('TIME did not return a time')
      if (rttMs < best.rttMs) best = { rttMs, skewMs: serverMs - (asked + rttMs / 2) }
    }
  } catch (error) {
    if (!isRefused(error)) throw error
    return check.warning(
      `the command TIME is forbidden: ${reasonOf(error)}`,
      'allow the user to run TIME (ACL SETUSER … +time); if that is impossible, synchronise the clocks of all processes by NTP',
    )
  }
  const skewMs = Math.round(best.skewMs)
  const seen = `the clock of Redis is ${distance(skewMs)} this one (± ${Math.max(1, Math.ceil(best.rttMs / 2))} ms)`
  if (Math.abs(skewMs) < toleratedSkewMs) return check.ok(seen)
  return check.warning(
    `${seen}; limits use the clock of Redis, but logs and schedules use this one`,
    'synchronise both machines by NTP (chronyc tracking, timedatectl)',
  )
}

function timeOf(answer: unknown): number | undefined {
  if (!Array.isArray(answer)) return undefined
  const [seconds, micros] = answer.map(Number)
  const ms = Number(seconds) * 1_000 + Number(micros) / 1_000
  return Number.isFinite(ms) ? ms : undefined
}

function distance(skewMs: number): string {
  const ms = Math.abs(skewMs)
  const text = ms < 10_000 ? `${ms} ms` : `${Math.round(ms / 1_000)} s`
  return ms === 0 ? 'equal to' : `${text} ${skewMs > 0 ? 'ahead of' : 'behind'}`
}
