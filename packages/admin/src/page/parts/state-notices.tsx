import { usePolled } from '../api/poll.ts'
import type { Fleet, Policies, Traffic } from '../api/types.ts'
import { Notice } from '../parts/basics.tsx'
import { killModes } from '../words/change-words.ts'
import { count, plain } from '../words/format.ts'
import { linkTo } from './app-state.ts'

/** Returns whether failure modes decide because a store did not answer. */
export function useIsAway(): boolean {
  const fleet = usePolled<Fleet>('fleet').data
  const traffic = usePolled<Traffic>('traffic').data
  return fleet?.store?.isAway || traffic?.fallback || false
}

/** Shows exceptional states, which must not be overlooked. */
export function StateNotices() {
  const isAway = useIsAway()
  const policies = usePolled<Policies>('policies').data
  const fleet = usePolled<Fleet>('fleet').data
  const keysOwed = fleet?.store?.keysOwed ?? 0
  const versions = fleet?.versions ?? []
  const killed = killModes.find(([mode]) => mode === policies?.kill)
  const refused = fleet?.instances.filter((each) => each.refused) ?? []
  const refusal = policies?.refused ?? refused[0]?.refused
  return (
    <div class="stack">
      {isAway && (
        <Notice tone="near">
          <p>
            <strong>The store is unavailable.</strong> Each process enforces its share of each limit
            by itself, and reports it to the store later
            {keysOwed > 0 && ` (${count(keysOwed)} ${keysOwed === 1 ? 'key' : 'keys'} so far)`}.
            Policies with the failure mode “open” let everything pass, and “closed” ones refuse it.
            Nothing can be changed meanwhile.
          </p>
        </Notice>
      )}
      {policies && policies.kill !== 'none' && (
        <Notice
          tone={policies.kill === 'off' ? 'deny' : 'shadow'}
          action={<a href={linkTo('policies')}>Kill switch</a>}
        >
          <p>
            <strong>The kill switch is on: {killed?.[1]}.</strong> {killed?.[2]}
            {policies.killedBy === 'environment' &&
              ' The environment variable of this process throws it.'}
          </p>
        </Notice>
      )}
      {refusal && (
        <Notice tone="deny">
          <p>
            <strong>
              {policies?.refused
                ? 'This process refuses'
                : `${count(refused.length)} of ${count(fleet?.instances.length ?? 0)} processes refuse`}{' '}
              version {refusal.version}:
            </strong>{' '}
            {refusal.message}
          </p>
        </Notice>
      )}
      {policies?.entries
        .filter(({ hides }) => hides !== undefined)
        .map(({ policy, field, value, hides }) => (
          <Notice key={`${policy} ${field}`} tone="near">
            <p>
              The file has a newer {field} for <strong>{policy}</strong>: {plain(hides)}. The change
              to {plain(value)} hides it until it is undone.
            </p>
          </Notice>
        ))}
      {versions.length > 1 && refused.length === 0 && (
        <Notice tone="near">
          <p>
            The fleet runs {versions.length} versions:{' '}
            {versions.map(({ version, instances }) => `${instances} × ${version}`).join(', ')}.
          </p>
        </Notice>
      )}
    </div>
  )
}
