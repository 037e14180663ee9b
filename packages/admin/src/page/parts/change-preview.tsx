import { useEffect, useState } from 'preact/hooks'
import { call } from '../api/client.ts'
import type { Affected, Change, Difference } from '../api/types.ts'
import { brief, count, plain } from '../words/format.ts'
import { Badge, Fault } from './basics.tsx'

interface PreviewState {
  readonly change?: Change
  readonly error?: unknown
  readonly isAsking?: boolean
}

/** Pause in typing, in ms. */
const pauseMs = 250

/**
 * Requests the effect of a change after each pause in typing.
 * @param body the request without its reason; `undefined` if there is nothing to request
 */
export function usePreview(path: string, body: object | undefined, ifMatch: string | undefined) {
  const [state, setState] = useState<PreviewState>({})
  const text = body && JSON.stringify({ ...body, reason: 'preview', dryRun: true })
  useEffect(() => {
    if (text === undefined) {
      setState({})
      return
    }
    const abort = new AbortController()
    setState((before) => ({ ...before, isAsking: true }))
    const timer = setTimeout(() => {
      const options = { body: JSON.parse(text), ifMatch, signal: abort.signal }
      call<Change>(path, { method: 'POST', ...options }).then(
        (change) => setState({ change }),
        (error: unknown) => {
          if (!abort.signal.aborted) setState({ error })
        },
      )
    }, pauseMs)
    return () => {
      abort.abort()
      clearTimeout(timer)
    }
  }, [path, text, ifMatch])
  return state
}

/** Shows the effect of a change, and the clients it would affect. */
export function ChangePreview({ state }: { state: PreviewState }) {
  const { change, error, isAsking } = state
  if (error !== undefined) return <Fault error={error} />
  if (!change) return isAsking ? <p class="muted">Checking what would change …</p> : null
  return (
    <div class="stack tight" aria-live="polite">
      <h3>What changes</h3>
      <Differences differences={change.differences} />
      {change.differences.length > 0 && <Touched affected={change.affected} />}
    </div>
  )
}

function Differences({ differences }: { differences: readonly Difference[] }) {
  if (differences.length === 0) return <p class="muted">Nothing changes.</p>
  return (
    <ul class="diff stack">
      {differences.map(({ path, from, to, newCount }) => (
        <li key={path}>
          <span class="mono path">{path}</span> {newCount && <Badge tone="near">new count</Badge>}
          <div class="mono sides stack tight">
            <del class="deny">
              <span class="unseen">from </span>
              {plain(from)}
            </del>
            <ins class="ok">
              <span class="unseen">to </span>
              {plain(to)}
            </ins>
          </div>
        </li>
      ))}
    </ul>
  )
}

/** Names the identities affected by a change, according to the busiest keys. */
function Touched({ affected: { known, why, policies } }: { affected: Affected }) {
  return (
    <div class="stack tight">
      <h3>Affected identities, from the busiest keys</h3>
      {known && policies.length === 0 && (
        <p class="muted">None of the busiest keys is newly refused or admitted.</p>
      )}
      {policies.map(({ policy, basis, newlyDenied, newlyAllowed }) => (
        <p key={policy}>
          <strong>{policy}</strong> <span class="muted">by the last {basis}</span>{' '}
          <Badge tone={newlyDenied.length > 0 ? 'deny' : 'none'}>
            {count(newlyDenied.length)} newly refused
          </Badge>{' '}
          {namesOf(newlyDenied)}{' '}
          <Badge tone={newlyAllowed.length > 0 ? 'ok' : 'none'}>
            {count(newlyAllowed.length)} no longer refused
          </Badge>{' '}
          {namesOf(newlyAllowed)}
        </p>
      ))}
      {why && <p class="muted small">{why}</p>}
    </div>
  )
}

const shownKeys = 5

function namesOf(keys: Affected['policies'][number]['newlyDenied']): string {
  const names = keys.slice(0, shownKeys).map(({ digest, name, perWindow }) => {
    return `${name ?? digest.slice(0, 8)} (${brief(perWindow)} per window)`
  })
  const more = keys.length > shownKeys ? [`${keys.length - shownKeys} more`] : []
  return [...names, ...more].join(', ')
}
