import type { Entry, Policy } from '../../api/types.ts'
import { plain } from '../../format.ts'
import { Badge, Notice, Panel } from '../../parts/basics.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { isValueOf, type ListProps } from './open-dialog.tsx'
import { keyText, limitParts, windowText } from './policy-values.ts'

interface InForceProps extends ListProps {
  readonly version: string
  readonly policies: readonly Policy[]
  readonly entries: readonly Entry[]
}

/** The policies as they are now. */
export function InForce({ version, policies, entries, mayChange, onOpen }: InForceProps) {
  const columns: readonly Column<Policy>[] = [
    {
      title: 'Policy',
      cell: ({ name, mode }) => (
        <>
          {name}{' '}
          {mode === 'shadow' && (
            <span class="slim">
              <Badge tone="shadow">shadow</Badge>
            </span>
          )}
        </>
      ),
    },
    {
      title: 'Applies to',
      look: 'cut wide',
      cell: ({ routes }) => <span title={routes.join(', ')}>{routesText(routes)}</span>,
    },
    { title: 'Counts by', look: 'wide', cell: ({ key }) => keyText(key) },
    { title: 'Algorithm', look: 'wide', cell: ({ algorithm }) => algorithm },
    {
      title: 'Limit',
      look: 'num',
      cell: ({ limit, burst, window }) => (
        <>
          <LimitOf limit={limit} />
          {burst !== undefined && <span class="muted"> +{burst}</span>}
          {window !== undefined && <span class="muted"> / {windowText(window)}</span>}
        </>
      ),
    },
    {
      title: 'Mode',
      look: 'wide',
      cell: (policy) => (
        <>
          <Badge tone={policy.mode === 'shadow' ? 'shadow' : 'none'}>{policy.mode}</Badge>{' '}
          {policy.share !== undefined && policy.share < 1 && (
            <Badge>{Math.round(policy.share * 100)}%</Badge>
          )}{' '}
          {entries.some((entry) => isValueOf(entry, policy)) && (
            <Badge tone="accent">changed</Badge>
          )}
        </>
      ),
    },
    {
      title: '',
      look: 'num',
      cell: (policy) =>
        mayChange && (
          <button
            type="button"
            class="button little plain"
            aria-label={`Change ${policy.name}`}
            onClick={() => onOpen({ what: 'edit', policy })}
          >
            Change
          </button>
        ),
    },
  ]
  return (
    <Panel title="In force" flush aside={<Badge tone="accent">version {version}</Badge>}>
      <Table
        label="Policies in force"
        items={policies}
        idOf={({ name }) => name}
        columns={columns}
      />
    </Panel>
  )
}

/** Tiers take more room than a narrow screen has. */
function LimitOf({ limit }: { limit: unknown }) {
  const { amounts, source } = limitParts(limit)
  return (
    <b>
      <span class={source === '' ? '' : 'wide'}>{amounts} </span>
      {source}
    </b>
  )
}

function routesText(routes: readonly string[]): string {
  if (routes.length === 1 && routes[0] === '*') return 'all requests'
  return routes.map((route) => (route === '*' ? 'all others' : route)).join(', ')
}

/** Names changes that keep a newer value of the file from having an effect. */
export function Hidden({ entries, mayChange, onOpen }: ListProps & { entries: readonly Entry[] }) {
  return (
    <>
      {entries
        .filter((entry) => entry.hides !== undefined)
        .map(({ policy, field, value, hides }) => (
          <Notice
            key={`${policy} ${field}`}
            tone="near"
            action={
              mayChange && (
                <button
                  type="button"
                  class="button little"
                  onClick={() => onOpen({ what: 'remove', entry: { policy, field } })}
                >
                  Take the file’s
                </button>
              )
            }
          >
            <p>
              The file has a newer {field} for <strong>{policy}</strong>: {plain(hides)}. The change
              to {plain(value)} hides it.
            </p>
          </Notice>
        ))}
    </>
  )
}
