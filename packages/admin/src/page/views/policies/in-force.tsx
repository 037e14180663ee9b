import type { Entry, Policies, Policy } from '../../api/types.ts'
import { Badge, Button, Notice, Panel } from '../../parts/basics.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { plain } from '../../words/format.ts'
import { keyText, limitParts, windowText } from '../../words/policy-values.ts'
import { type ListProps, RemoveDialog } from './dialogs.tsx'
import { PolicyEditor } from './policy-editor.tsx'

type InForceProps = ListProps & { readonly policies: Policies }

/** The policies as they are now. */
export function InForce({
  policies: { version, policies, entries },
  mayChange,
  onOpen,
}: InForceProps) {
  const columns: readonly Column<Policy>[] = [
    {
      title: 'Policy',
      by: ({ name }) => name,
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
    {
      title: 'Counts by',
      look: 'wide',
      by: ({ key }) => keyText(key),
      cell: ({ key }) => keyText(key),
    },
    { title: 'Algorithm', look: 'roomy', cell: ({ algorithm }) => algorithm },
    {
      title: 'Limit',
      look: 'num',
      by: ({ limit }) => (typeof limit === 'number' ? limit : plain(limit)),
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
      by: (policy) => `${policy.mode === 'shadow'} ${valuesOf(policy, entries).length === 0}`,
      cell: (policy) => (
        <>
          <Badge tone={policy.mode === 'shadow' ? 'shadow' : 'none'}>{policy.mode}</Badge>{' '}
          {policy.share !== undefined && policy.share < 1 && (
            <Badge>{Math.round(policy.share * 100)}%</Badge>
          )}{' '}
          {valuesOf(policy, entries).length > 0 && <Badge tone="accent">changed</Badge>}
        </>
      ),
    },
    {
      title: '',
      look: 'act',
      cell: (policy) =>
        mayChange && (
          <Button
            look="plain"
            little
            label={`Change ${policy.name}`}
            onClick={() =>
              onOpen((props) => (
                <PolicyEditor {...props} policy={policy} entries={valuesOf(policy, entries)} />
              ))
            }
          >
            Change
          </Button>
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
        filter={{
          hint: 'A policy, a route, a key',
          textOf: ({ name, routes, key, mode }) => [name, ...routes, keyText(key), mode].join(' '),
        }}
      />
    </Panel>
  )
}

/** The changes of values of a policy itself. */
function valuesOf({ name }: Policy, entries: readonly Entry[]): readonly Entry[] {
  return entries.filter(({ policy, field }) => policy === name && field !== 'override')
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
                <Button
                  little
                  onClick={() =>
                    onOpen((props) => <RemoveDialog {...props} entry={{ policy, field }} />)
                  }
                >
                  Take the file’s
                </Button>
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
