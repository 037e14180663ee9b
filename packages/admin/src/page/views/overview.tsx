import { useEffect, useState } from 'preact/hooks'
import { type Polled, usePolled } from '../api/poll.ts'
import type { Fleet, Live, Policies, Session } from '../api/types.ts'
import { count, duration } from '../format.ts'
import { Blank, Loaded, Panel } from '../parts/basics.tsx'
import { FleetPanel } from './overview/fleet-panel.tsx'
import { Limited } from './overview/limited.tsx'
import { LiveHistory, type LiveWindow } from './overview/live-window.ts'
import { Latency, Numbers } from './overview/numbers.tsx'
import { StateNotices } from './state-notices.tsx'

/** Goes on while another view is shown, and as long as the page is open. */
const history = new LiveHistory()

/** Makes rates of the live counts. */
export function useLiveWindow({ data, at, error }: Polled<Live>): LiveWindow | undefined {
  const [window, setWindow] = useState(history.window)
  useEffect(() => {
    if (!data || at === undefined || error !== undefined) return
    history.note(data, at)
    setWindow(history.window)
  }, [data, at, error])
  return window
}

interface OverviewProps {
  readonly session: Session
  readonly live: Polled<Live>
  readonly window: LiveWindow | undefined
}

export function Overview({ session, live, window }: OverviewProps) {
  const fleet = usePolled<Fleet>('fleet')
  const policies = usePolled<Policies>('policies')
  return (
    <>
      <div class="head">
        <h1>Overview</h1>
        {window && (
          <span class="muted small">
            {window.isSinceStart ? 'since the start' : `the last ${duration(window.spanMs)}`} of{' '}
            {window.processes === 1 ? 'this process' : `${count(window.processes)} processes`}
          </span>
        )}
      </div>
      <div class="stack">
        <StateNotices policies={policies.data} live={live.data} fleet={fleet.data} />
        {session.features.metrics ? (
          <Loaded polled={live} what="Live counts">
            {() => window && <Numbers window={window} />}
          </Loaded>
        ) : (
          <Panel title="Live counts">
            <Blank title="Nothing is counted">
              Give createAdmin the metrics of collectMetrics, and rateLimit the same as an observer.
            </Blank>
          </Panel>
        )}
        <div class="grid">
          {session.features.metrics && window && <Latency answerers={window.answerers} />}
          {session.features.metrics && <Limited />}
          <FleetPanel fleet={fleet} live={live.data} />
        </div>
      </div>
    </>
  )
}
