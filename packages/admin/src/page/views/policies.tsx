import { useState } from 'preact/hooks'
import { call, wordsOf } from '../api/client.ts'
import { usePolled } from '../api/poll.ts'
import type {
  Entry,
  Export,
  History,
  Override,
  Policies as PoliciesAnswer,
  Policy,
  Session,
  VersionRecord,
} from '../api/types.ts'
import { useNow } from '../app-state.ts'
import { distance, moment, plain } from '../format.ts'
import { Badge, Blank, Loaded, Notice, Panel } from '../parts/basics.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { tell } from '../parts/toasts.tsx'
import {
  DiffDialog,
  type EntryToRemove,
  KillDialog,
  RemoveDialog,
  RollbackDialog,
} from './policies/dialogs.tsx'
import { PolicyEditor } from './policies/policy-editor.tsx'
import { keyText, limitParts, limitText, windowText } from './policies/policy-values.ts'
import { StateNotices } from './state-notices.tsx'

/** The dialog that is open. */
type Open =
  | { readonly what: 'edit'; readonly policy: Policy }
  | { readonly what: 'remove'; readonly entry: EntryToRemove }
  | { readonly what: 'rollback'; readonly record: VersionRecord }
  | { readonly what: 'kill' }
  | {
      readonly what: 'diff'
      readonly record: VersionRecord
      readonly before: VersionRecord | undefined
    }

export function Policies({ session }: { session: Session }) {
  const policies = usePolled<PoliciesAnswer>('policies')
  const [open, setOpen] = useState<Open>()
  const mayChange = session.may.includes('policies') && session.features.changes
  const close = () => setOpen(undefined)
  const { data, etag } = policies
  return (
    <>
      <div class="head">
        <h1>Policies</h1>
        <div class="row">
          {session.may.includes('policies') && <ExportButton />}
          {mayChange && data && (
            <button type="button" class="button danger" onClick={() => setOpen({ what: 'kill' })}>
              Kill switch
            </button>
          )}
        </div>
      </div>
      <div class="stack">
        <StateNotices policies={data} />
        <Loaded polled={policies} what="The policies">
          {({ version, policies, overrides, entries }) => (
            <>
              <Hidden entries={entries} mayChange={mayChange} onOpen={setOpen} />
              <Panel title="In force" flush aside={<Badge tone="accent">version {version}</Badge>}>
                <Table
                  label="Policies in force"
                  items={policies}
                  idOf={({ name }) => name}
                  columns={policyColumns(entries, mayChange, setOpen)}
                />
              </Panel>
              <Overrides overrides={overrides} mayChange={mayChange} onOpen={setOpen} />
            </>
          )}
        </Loaded>
        <HistoryPanel mayChange={mayChange} onOpen={setOpen} />
      </div>
      {open?.what === 'edit' && data && (
        <PolicyEditor
          policy={open.policy}
          entries={data.entries.filter(
            ({ policy, field }) => policy === open.policy.name && field !== 'override',
          )}
          ifMatch={etag}
          onClose={close}
        />
      )}
      {open?.what === 'remove' && (
        <RemoveDialog entry={open.entry} ifMatch={etag} onClose={close} />
      )}
      {open?.what === 'rollback' && (
        <RollbackDialog record={open.record} ifMatch={etag} onClose={close} />
      )}
      {open?.what === 'kill' && data && <KillDialog now={data} ifMatch={etag} onClose={close} />}
      {open?.what === 'diff' && (
        <DiffDialog record={open.record} before={open.before} onClose={close} />
      )}
    </>
  )
}

type OnOpen = (open: Open) => void

function policyColumns(
  entries: readonly Entry[],
  mayChange: boolean,
  onOpen: OnOpen,
): readonly Column<Policy>[] {
  return [
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
      cell: ({ name, mode, share }) => (
        <>
          <Badge tone={mode === 'shadow' ? 'shadow' : 'none'}>{mode}</Badge>{' '}
          {share !== undefined && share < 1 && <Badge>{Math.round(share * 100)}%</Badge>}{' '}
          {entries.some(({ policy, field }) => policy === name && field !== 'override') && (
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

interface ListProps {
  readonly mayChange: boolean
  readonly onOpen: OnOpen
}

/** Names changes that keep a newer value of the file from having an effect. */
function Hidden({ entries, mayChange, onOpen }: ListProps & { entries: readonly Entry[] }) {
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

type OverridesProps = ListProps & { readonly overrides: readonly Override[] }

function Overrides({ overrides, mayChange, onOpen }: OverridesProps) {
  const columns: readonly Column<Override>[] = [
    {
      title: 'Identity',
      look: 'cut',
      cell: ({ key }) =>
        Object.entries(key)
          .map(([name, value]) => `${name} ${value}`)
          .join(', '),
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
    { title: 'Reason', look: 'wide', cell: ({ reason }) => reason ?? '–' },
    { title: 'From', look: 'wide', cell: ({ origin }) => <Badge>{origin}</Badge> },
    {
      title: '',
      look: 'num',
      cell: ({ policy, key, origin }) =>
        mayChange &&
        origin === 'change' && (
          <button
            type="button"
            class="button little plain"
            onClick={() => onOpen({ what: 'remove', entry: { policy, field: 'override', key } })}
          >
            Remove
          </button>
        ),
    },
  ]
  return (
    <Panel title="Overrides" flush>
      {overrides.length === 0 ? (
        <Blank title="No identity has a limit of its own">
          A temporary limit is set at Keys; others stand in the file.
        </Blank>
      ) : (
        <Table
          label="Overrides"
          items={overrides}
          idOf={({ policy, key, origin }) => `${origin} ${policy} ${JSON.stringify(key)}`}
          columns={columns}
        />
      )}
    </Panel>
  )
}

const kindTones = { file: 'none', change: 'accent', rollback: 'near', kill: 'deny' } as const

function HistoryPanel({ mayChange, onOpen }: ListProps) {
  const history = usePolled<History>('policies/history')
  const now = useNow()
  const columns = (versions: readonly VersionRecord[]): readonly Column<VersionRecord>[] => [
    {
      title: 'Version',
      cell: ({ id, inForce }) => (
        <>
          <span class="mono">{id}</span> {inForce && <Badge tone="ok">in force</Badge>}
        </>
      ),
    },
    {
      title: 'Kind',
      look: 'wide',
      cell: ({ kind }) => <Badge tone={kindTones[kind]}>{kind}</Badge>,
    },
    { title: 'Author', look: 'wide', cell: ({ author }) => author },
    {
      title: 'Reason',
      look: 'cut wide',
      cell: ({ reason }) => <span title={reason}>{reason}</span>,
    },
    {
      title: 'When',
      look: 'num wide',
      cell: ({ at }) => <span title={moment(at)}>{distance(at, now)}</span>,
    },
    {
      title: '',
      look: 'num',
      cell: (record) => (
        <>
          <button
            type="button"
            class="button little plain"
            aria-label={`Diff of ${record.id}`}
            onClick={() => {
              const before = versions[versions.indexOf(record) + 1]
              onOpen({ what: 'diff', record, before })
            }}
          >
            Diff
          </button>{' '}
          {mayChange && !record.inForce && (
            <button
              type="button"
              class="button little plain"
              aria-label={`Roll back to ${record.id}`}
              onClick={() => onOpen({ what: 'rollback', record })}
            >
              Roll back
            </button>
          )}
        </>
      ),
    },
  ]
  return (
    <Panel title="History" flush aside={<span class="muted small">the last 100 versions</span>}>
      <Loaded polled={history} what="The history">
        {({ versions }) =>
          versions.length === 0 ? (
            <Blank title="Nothing has been changed yet" />
          ) : (
            <Table
              label="History"
              items={versions}
              idOf={({ id, number, at }) => `${id} ${number} ${at}`}
              columns={columns(versions)}
            />
          )
        }
      </Loaded>
    </Panel>
  )
}

function ExportButton() {
  const run = async () => {
    try {
      const { version, text } = await call<Export>('policies/export')
      const link = document.createElement('a')
      const url = URL.createObjectURL(new Blob([text], { type: 'application/yaml' }))
      link.href = url
      link.download = `sluice-${version}.yaml`
      link.click()
      URL.revokeObjectURL(url)
    } catch (error) {
      tell(wordsOf(error))
    }
  }
  return (
    <button type="button" class="button" onClick={() => void run()}>
      Export
    </button>
  )
}
