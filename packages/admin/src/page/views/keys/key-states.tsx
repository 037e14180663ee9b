import type { KeyPolicy } from '../../api/types.ts'
import { Badge, Meter } from '../../parts/basics.tsx'
import { count, duration, percent, plain } from '../../words/format.ts'
import { shareUsed, spans } from './verdict.ts'

interface StatesProps {
  readonly policies: readonly KeyPolicy[]
  /** Writes the window of a policy as part of its limit: ` / 1m`. */
  readonly windowOf: (policy: string) => string
}

/** The state of a key under each policy, as bars. */
export function KeyStates({ policies, windowOf }: StatesProps) {
  return (
    <ul class="key-states">
      {policies.map((policy) => (
        <State key={policy.policy} of={policy} window={windowOf(policy.policy)} />
      ))}
    </ul>
  )
}

function State({ of, window }: { of: KeyPolicy; window: string }) {
  const { policy, isPenalty, mode, allowed, used, denied } = of
  const limit = of.capacity ?? of.limit
  const share = shareUsed(of)
  const isShadow = mode === 'shadow'
  return (
    <li class="stack tight">
      <div class="row apart">
        <span>
          <strong>{policy}</strong> {isPenalty && <Badge tone="near">penalty</Badge>}{' '}
          {isShadow && <Badge tone="shadow">shadow</Badge>}{' '}
          {allowed === false && (
            <Badge tone={isShadow ? 'shadow' : 'deny'}>
              {isShadow ? 'would deny' : isPenalty ? 'blocked' : 'denied'}
            </Badge>
          )}
        </span>
        <span>
          <b>{used === undefined ? '–' : count(used)}</b>
          <span class="muted">
            {` ${isPenalty ? 'strikes' : 'units'}`}
            {limit !== undefined && ` of ${plain(limit)}${of.capacity === undefined ? window : ''}`}
          </span>
        </span>
      </div>
      {limit !== undefined && <Meter share={share} label={`${policy}: ${percent(share)} used`} />}
      <div class="row apart muted small">
        <span>{!isPenalty && denialWords(denied)}</span>
        <span>{stateWords(of)}</span>
      </div>
    </li>
  )
}

/** Says when the key was denied, as far as the busiest keys tell. */
function denialWords(denied: KeyPolicy['denied']): string {
  const known = spans.filter(([span]) => denied[span] !== undefined)
  if (known.length === 0) return 'no denials among the busiest keys'
  if (denied['1h'] === 0) return 'not denied within the last hour'
  return `denied ${known.map(([span, words]) => `${count(denied[span] ?? 0)} within ${words}`).join(' · ')}`
}

function stateWords(of: KeyPolicy): string {
  const { isPenalty, allowed, used, retryAfterMs, resetMs, limit, refillMs } = of
  if (allowed === undefined)
    return used === undefined ? 'not known now' : 'the limit depends on the request'
  if (!allowed && retryAfterMs === undefined) return 'waiting cannot help'
  if (!allowed) return `allowed again in ${duration(retryAfterMs ?? 0)}`
  if (isPenalty) return 'not blocked'
  if (refillMs !== undefined) return `${limit} units come back in ${duration(refillMs)}`
  return used && resetMs ? `next units in ${duration(resetMs)}` : 'all units are left'
}
