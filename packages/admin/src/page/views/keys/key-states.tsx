import type { KeyPolicy } from '../../api/types.ts'
import { Badge, Meter } from '../../parts/basics.tsx'
import { count, duration, percent, plain } from '../../words/format.ts'
import { denialsIn, shareUsed } from './verdict.ts'

interface StatesProps {
  readonly policies: readonly KeyPolicy[]
  readonly windowOf: (policy: string) => string
}

export function KeyStates({ policies, windowOf }: StatesProps) {
  return (
    <ul class="key-states">
      {policies.map((of) => (
        <State key={of.policy} of={of} policies={policies} windowOf={windowOf} />
      ))}
    </ul>
  )
}

function State({ of, policies, windowOf }: StatesProps & { of: KeyPolicy }) {
  const { policy, isPenalty, mode, allowed, used } = of
  const limit = of.capacity ?? of.limit
  const share = shareUsed(of)
  const isShadow = mode === 'shadow'
  const { span, words } = denialsIn(policies)
  const isBlocked = policies.some(({ isPenalty, allowed }) => isPenalty && allowed === false)
  const isByHand = isPenalty && of.withinMs === undefined
  const strikes = isByHand ? 'blocks by hand alone' : 'each denied request is a strike'
  return (
    <li class="stack tight">
      <div class="row apart">
        <span>
          <strong>{policy}</strong>{' '}
          {isPenalty && policy !== 'penalty' && <Badge tone="near">penalty</Badge>}{' '}
          {isShadow && <Badge tone="shadow">shadow</Badge>}{' '}
          {allowed === false && (
            <Badge tone={isShadow ? 'shadow' : 'deny'}>
              {isShadow ? 'would deny' : isPenalty ? 'blocked' : 'denied'}
            </Badge>
          )}
        </span>
        {!isByHand && (
          <span>
            <b>{used === undefined ? '–' : count(used)}</b>
            <span class="muted">
              {` ${isPenalty ? 'strikes' : 'units'}`}
              {limit !== undefined &&
                ` of ${plain(limit)}${of.capacity === undefined ? windowOf(policy) : ''}`}
              {of.withinMs !== undefined && ` / ${duration(of.withinMs)}`}
            </span>
          </span>
        )}
      </div>
      {limit !== undefined && !isByHand && (
        <Meter share={share} label={`${policy}: ${percent(share)} used`} />
      )}
      <div class="row apart muted small">
        <span>{isPenalty ? strikes : denialWords(of.denied[span], words)}</span>
        <span>{stateWords(of, isBlocked)}</span>
      </div>
    </li>
  )
}

function denialWords(denied: number | undefined, span: string): string {
  if (denied === undefined) return 'no denials among the busiest keys'
  return denied === 0 ? `not denied within ${span}` : `denied ${count(denied)} within ${span}`
}

function stateWords(of: KeyPolicy, isBlocked: boolean): string {
  const { isPenalty, allowed, used, retryAfterMs, resetMs, limit, refillMs } = of
  if (allowed === undefined)
    return used === undefined ? 'not known now' : 'the limit depends on the request'
  if (!allowed && retryAfterMs === undefined) return 'waiting cannot help'
  if (!allowed) return `allowed again in ${duration(retryAfterMs ?? 0)}`
  if (isPenalty) return 'not blocked'
  if (isBlocked && !used) return 'denied requests take nothing'
  if (refillMs !== undefined) return `${limit} units come back in ${duration(refillMs)}`
  return used && resetMs ? `next units in ${duration(resetMs)}` : 'all units are left'
}
