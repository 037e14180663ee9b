import type { Metrics, TopKeysAnswer, TopKeysWindow } from '@sluice/metrics'
import type { Answering } from './context.ts'
import { hourMs, hoursOfDay } from './day.ts'
import { liveOf, metricsOf, shadowPolicies } from './live.ts'

const maxIdentities = 20
const maxPolicies = 50

/** Estimated units that an identity took in one window of a policy. */
export interface Taken {
  readonly digest: string
  readonly name: string | undefined
  readonly perWindow: number
}

/** Estimates for each of the busiest keys how much of a window's limit it requested. */
export function takenUnder(
  metrics: Metrics,
  { policy, windowMs }: { readonly policy: string; readonly windowMs: number },
):
  | { readonly basis: TopKeysWindow; readonly top: TopKeysAnswer; readonly keys: readonly Taken[] }
  | undefined {
  const basis = windowMs <= 60_000 ? '1m' : windowMs <= 600_000 ? '10m' : '1h'
  const top = metrics.topKeys({ policy, by: 'cost', window: basis, most: 100 })
  if (!top) return undefined
  const spanMs = Math.max(1, Date.now() - top.sinceMs)
  const keys = top.keys.map(({ digest, name, count }) => {
    const perWindow = Math.round((count * Math.min(windowMs, spanMs) * 100) / spanMs) / 100
    return { digest, name, perWindow }
  })
  return { basis, top, keys }
}

/** Lists identities near a limit or refused most, and the policies' last day by hour. */
export const near: Answering = ({ admin }) => {
  const metrics = metricsOf(admin)
  const live = liveOf(admin)
  const { at, scope, processes, policies } = live
  admin.history?.day.note(live)
  const shadows = shadowPolicies(admin)
  const info = metrics.fleetSnapshot().families.find(({ name }) => name === 'sluice_policy_info')
  const algorithms = new Map(info?.samples.map(({ labels }) => [labels[0], labels[2] ?? '']))
  const identities = policies.flatMap(({ policy, limit, windowSeconds = 0, hotKeyShare }) => {
    // Keys of penalties, and of policies beyond the maximum, are not tracked.
    if (hotKeyShare === undefined) return []
    // Other algorithms have a burst, or leases.
    const isWindowed = /^(sliding|fixed)-/.test(algorithms.get(policy) ?? '')
    const refused = metrics.topKeys({ policy, by: 'denied', window: '1h', most: maxIdentities })
    const taken = takenUnder(metrics, { policy, windowMs: windowSeconds * 1_000 })?.keys ?? []
    const found = new Map([...(refused?.keys ?? []), ...taken].map((key) => [key.digest, key.name]))
    return [...found].map(([digest, name]) => {
      const denied = refused?.keys.find((key) => key.digest === digest)?.count ?? 0
      const perWindow = taken.find((key) => key.digest === digest)?.perWindow
      const share = isWindowed && limit && perWindow !== undefined && { share: perWindow / limit }
      const mode = shadows.has(policy) ? 'shadow' : 'enforce'
      return { ...{ policy, mode, digest, name, denied }, ...share }
    })
  })
  const first = Math.floor(at / hourMs) - hoursOfDay + 1
  const days = admin.history?.day.policies ?? []
  return {
    ...{ at, scope, processes, since: first * hourMs, policiesInAll: days.length },
    identities: identities
      .sort((one, other) => nearness(other) - nearness(one) || other.denied - one.denied)
      .slice(0, maxIdentities),
    policies: days.slice(0, maxPolicies).map(([policy, hours]) => ({
      policy,
      hours: Array.from({ length: hoursOfDay }, (_, hour) => hours.get(first + hour) ?? [0, 0, 0]),
    })),
  }
}

/** An identity whose limit is not a single number counts as at its limit if it is refused. */
function nearness({ share, denied }: { share?: number; denied: number }): number {
  return share ?? Math.min(1, denied)
}
