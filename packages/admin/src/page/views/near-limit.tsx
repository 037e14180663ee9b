import { usePolled } from '../api/poll.ts'
import type { Near } from '../api/types.ts'
import { linkTo } from '../parts/app-state.ts'
import { Badge, Blank, Loaded, Meter, Panel } from '../parts/basics.tsx'
import { identityColumns } from '../parts/identity-columns.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { brief, clockTime, count, percent } from '../words/format.ts'

type Identity = Near['identities'][number]
type Day = Near['policies'][number]

/** Sketches of all policies are merged for it. */
const nearMs = 10_000

const columns: readonly Column<Identity>[] = [
  ...identityColumns,
  {
    title: 'Of its limit',
    look: 'wide',
    cell: ({ share }) => share !== undefined && <Meter share={share} />,
  },
  {
    title: '%',
    look: 'num',
    by: ({ share = 0 }) => share,
    cell: ({ share }) => (share === undefined ? '–' : percent(share)),
  },
  {
    title: 'Denied in 1 h',
    look: 'num',
    by: ({ denied }) => denied,
    cell: ({ denied }) => brief(denied),
  },
]

/** Lists identities near a limit or refused most, and the last day of the policies. */
export function NearLimit({ policy }: { policy: string }) {
  const near = usePolled<Near>('near', nearMs)
  const wanted = (each: { readonly policy: string }) => policy === '' || each.policy === policy
  return (
    <Loaded polled={near} what="The identities near a limit">
      {({ identities, policies, policiesInAll, since, processes }) => (
        <>
          <Panel
            title="Nearest to a limit, or refused most"
            flush
            aside={
              <Badge>{processes === 1 ? 'this process' : `${count(processes)} processes`}</Badge>
            }
          >
            <Table
              label="Identities near a limit"
              items={identities.filter(wanted)}
              idOf={(each) => `${each.policy} ${each.digest}`}
              columns={columns}
              blank={<Blank title="Nobody is near a limit" />}
            />
          </Panel>
          <Panel
            title="The last 24 hours"
            flush
            aside={<span class="muted small">{count(policiesInAll)} policies had traffic</span>}
          >
            <Table
              label="Policies by hour"
              items={policies.filter(wanted)}
              idOf={(each) => each.policy}
              columns={dayColumns(since)}
              blank={<Blank title="No traffic yet" />}
            />
          </Panel>
        </>
      )}
    </Loaded>
  )
}

function dayColumns(since: number): readonly Column<Day>[] {
  const total = (title: string, place: number): Column<Day> => {
    const by = ({ hours }: Day) => hours.reduce((sum, hour) => sum + (hour[place] ?? 0), 0)
    return { title, by, look: 'num', cell: (day) => brief(by(day)) }
  }
  return [
    {
      title: 'Policy',
      by: ({ policy }) => policy,
      cell: ({ policy }) => <a href={linkTo('top', policy)}>{policy}</a>,
    },
    { title: `Hours since ${clockTime(since)}`, cell: ({ hours }) => <Hours hours={hours} /> },
    ...['Checks', 'Denied', 'Near'].map(total),
  ]
}

/** A bar per hour, with the refused part in red. */
function Hours({ hours }: Pick<Day, 'hours'>) {
  const most = Math.max(1, ...hours.map(([checks = 0]) => checks))
  const words = hours
    .map(([checks = 0, denied = 0]) => `${checks} with ${denied} denied`)
    .join(', ')
  const bar = (tone: 'accent' | 'deny', value: number, hour: number) => {
    const height = value === 0 ? 0 : Math.max(4, (value / most) * 100)
    const place = { x: hour * 10, y: 100 - height, width: 8, height }
    return <rect key={`${hour} ${tone}`} class={tone} {...place} />
  }
  return (
    <svg
      class="hours"
      viewBox="0 0 240 100"
      preserveAspectRatio="none"
      role="img"
      aria-label={words}
    >
      {hours.map(([checks = 0], hour) => bar('accent', checks, hour))}
      {hours.map(([, denied = 0], hour) => bar('deny', denied, hour))}
    </svg>
  )
}
