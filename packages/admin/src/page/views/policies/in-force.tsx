import type { Entry, Override, Policies, Policy } from '../../api/types.ts'
import { Badge, Blank, Button, Name, Panel } from '../../parts/basics.tsx'
import { type Column, Table } from '../../parts/table.tsx'
import { nameOf } from '../../words/change-words.ts'
import { moment, plain } from '../../words/format.ts'
import { keyText, limitParts, limitText, windowText } from '../../words/policy-values.ts'
import { type ListProps, type Opened, RemoveDialog } from './dialogs.tsx'
import { PolicyEditor } from './policy-editor.tsx'

type InForceProps = ListProps & { readonly policies: Policies }

export function InForce({
  policies: { version, policies, entries },
  mayChange,
  onOpen,
}: InForceProps) {
  const changed = (name: string, fields: string) =>
    entries.some(({ policy, field }) => policy === name && fields.includes(field)) && (
      <>
        <Badge tone="accent">changed</Badge>{' '}
      </>
    )
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
      cell: ({ name, limit, burst, window }) => (
        <>
          {changed(name, 'limit burst')}
          <LimitOf limit={limit} />
          {burst !== undefined && <span class="muted"> +{burst}</span>}
          {window !== undefined && <span class="muted">{windowText(window)}</span>}
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
          {changed(policy.name, 'mode share')}
        </>
      ),
    },
    {
      title: '',
      look: 'act',
      cell: (policy) => {
        const remove = valuesOf(policy, entries).map(({ policy, field }) => ({ policy, field }))
        const button = openButton(onOpen, policy.name)
        return (
          mayChange && (
            <>
              {remove.length > 0 &&
                button('Undo', (props) => <RemoveDialog {...props} remove={remove} />)}
              {button('Change', (props) => (
                <PolicyEditor {...props} policy={policy} />
              ))}
            </>
          )
        )
      },
    },
  ]
  return (
    <Panel title="Current" flush aside={<Badge tone="accent">version {version}</Badge>}>
      <Table
        label="Current policies"
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

/** Returns what makes the buttons of a row. */
const openButton = (onOpen: ListProps['onOpen'], row: string) => (verb: string, dialog: Opened) => (
  <Button look="plain" little label={`${verb} ${row}`} onClick={() => onOpen(dialog)}>
    {verb}
  </Button>
)

function valuesOf({ name }: Policy, entries: readonly Entry[]): readonly Entry[] {
  return entries.filter(({ policy, field }) => policy === name && field !== 'override')
}

/** Tiers do not fit on a narrow screen. */
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

export function Overrides({
  overrides,
  mayChange,
  onOpen,
}: ListProps & { readonly overrides: readonly Override[] }) {
  const columns: readonly Column<Override>[] = [
    {
      title: 'Identity',
      look: 'cut',
      cell: ({ key }) => <Name text={nameOf(key)} />,
    },
    { title: 'Policy', cell: ({ policy }) => policy },
    {
      title: 'Limit',
      look: 'num',
      cell: ({ limit, mode }) => (
        <>
          {limit !== undefined && <b>{limitText(limit)}</b>}{' '}
          {mode && <Badge tone={mode === 'shadow' ? 'shadow' : 'none'}>{mode}</Badge>}
        </>
      ),
    },
    {
      title: 'Until',
      look: 'wide',
      cell: ({ until }) => (until === undefined ? '–' : moment(Date.parse(until))),
    },
    {
      title: 'Reason',
      look: 'cut wide',
      cell: ({ reason }) => <span title={reason}>{reason ?? '–'}</span>,
    },
    { title: 'From', look: 'roomy', cell: ({ origin }) => <Badge>{origin}</Badge> },
    {
      title: '',
      look: 'act',
      cell: ({ policy, key, origin }) =>
        mayChange &&
        origin === 'change' &&
        openButton(onOpen, nameOf(key))('Undo', (props) => (
          <RemoveDialog {...props} remove={[{ policy, field: 'override', key }]} />
        )),
    },
  ]
  return (
    <Panel title="Overrides" flush>
      <Table
        label="Overrides"
        items={overrides}
        idOf={({ policy, key, origin }) => `${origin} ${policy} ${JSON.stringify(key)}`}
        columns={columns}
        blank={
          <Blank title="No identity has its own limit">
            Raise a limit for a time under Keys; permanent ones are in the file.
          </Blank>
        }
      />
    </Panel>
  )
}
