import { type Decision, type Limiter, maxTimerMs, type Policy } from '@sluice/core'
import { algorithmOf } from '@sluice/core/backend'
import type { Hold } from '../request/passage.ts'
import { UnderWay, type UnderWayEntry } from './under-way.ts'

/** Renewals per lease time, so that one of them may fail. */
const renewalsPerLease = 3

interface Lease extends UnderWayEntry {
  readonly decision: Decision
}

/**
 * Renews the leases of all requests with one timer, and releases each with its response.
 * `undefined` if no policy has leases.
 * @returns a function that keeps the leases of a decision until its response ends; it returns
 * `undefined` if there are none
 */
export function leaseKeeper(
  limiter: Limiter,
  policies: readonly Policy[],
): ((decision: Decision) => Hold | undefined) | undefined {
  const leasesMs = policies.filter(countsLeases).map(({ windowMs }) => windowMs)
  if (leasesMs.length === 0) return undefined
  const periodMs = Math.max(1, Math.floor(Math.min(...leasesMs) / renewalsPerLease))
  const kept = new UnderWay<Lease>()
  let timer: ReturnType<typeof setInterval> | undefined
  let isRenewing = false

  /** A store that is slower than the timer must not accumulate calls. */
  async function renew(): Promise<void> {
    if (isRenewing) return
    isRenewing = true
    try {
      await Promise.all(kept.entries().map(({ decision }) => limiter.renew(decision)))
    } finally {
      isRenewing = false
    }
  }

  function end(lease: Lease): unknown {
    if (!kept.remove(lease)) return undefined
    if (kept.size === 0) {
      clearInterval(timer)
      timer = undefined
    }
    return limiter.release(lease.decision)
  }

  return (decision) => {
    // Leases of a shadow policy may arrive later.
    const lends =
      decision.shadow !== undefined ||
      decision.outcomes.some(({ policy, receipt }) => receipt && countsLeases(policy))
    if (!lends) return undefined
    const lease = { index: -1, decision }
    kept.add(lease)
    if (timer === undefined) {
      timer = setInterval(renew, Math.min(periodMs, maxTimerMs))
      // A lease left behind by its process expires. In other runtimes timers are numbers.
      timer.unref?.()
    }
    const release = () => end(lease)
    return { finish: release, abort: release }
  }
}

function countsLeases(policy: Policy): boolean {
  return algorithmOf(policy).counts === 'leases'
}
