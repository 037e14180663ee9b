import { useState } from 'preact/hooks'
import { call } from '../../api/client.ts'
import { usePolled } from '../../api/poll.ts'
import type { Change, Diff, Policies, VersionRecord } from '../../api/types.ts'
import { moment } from '../../format.ts'
import { ActionDialog } from '../../parts/action-dialog.tsx'
import { Loaded, Notice } from '../../parts/basics.tsx'
import { ChangePreview, Differences, usePreview } from '../../parts/change-preview.tsx'
import { Choice, Dialog } from '../../parts/forms.tsx'
import { tell } from '../../parts/toasts.tsx'

/** An entry or an override, to be taken back. */
export interface EntryToRemove {
  readonly policy: string
  readonly field: string
  readonly key?: Readonly<Record<string, string | number>>
}

interface DialogProps {
  readonly ifMatch: string | undefined
  readonly onClose: () => void
}

/** Takes a change back: the value of the file is in force again. */
export function RemoveDialog({ entry, ifMatch, onClose }: DialogProps & { entry: EntryToRemove }) {
  const [base] = useState(ifMatch)
  const preview = usePreview('policies/changes', { remove: [entry] }, base)
  return (
    <ActionDialog
      title={`Take back the ${entry.field} of ${entry.policy}`}
      onClose={onClose}
      blocked={preview.error !== undefined}
      actions={[
        {
          label: 'Take back',
          run: async (reason) => {
            const body = { remove: [entry], reason }
            await call('policies/changes', { method: 'POST', body, ifMatch: base })
            tell(`The ${entry.field} of ${entry.policy} is that of the file again.`)
          },
        },
      ]}
    >
      <p>The value of the file is in force again.</p>
      <ChangePreview state={preview} />
    </ActionDialog>
  )
}

type RollbackProps = DialogProps & { readonly record: VersionRecord }

/** Puts the changes of an earlier version in force again. */
export function RollbackDialog({ record, ifMatch, onClose }: RollbackProps) {
  const [base] = useState(ifMatch)
  const preview = usePreview('policies/rollback', { version: record.id }, base)
  return (
    <ActionDialog
      title={`Roll back to ${record.id}`}
      broad
      onClose={onClose}
      blocked={preview.error !== undefined}
      actions={[
        {
          label: 'Roll back',
          look: 'danger',
          run: async (reason) => {
            const body = { version: record.id, reason }
            const options = { method: 'POST', body, ifMatch: base } as const
            const { version } = await call<Change>('policies/rollback', options)
            tell(`The changes of ${record.id} are in force again, as version ${version}.`)
          },
        },
      ]}
    >
      <p>
        {record.author} made it on {moment(record.at)}: {record.reason}
      </p>
      <p class="muted">The changes of this version count again, over the file as it is today.</p>
      <ChangePreview state={preview} />
    </ActionDialog>
  )
}

type Kill = Policies['kill']

const killWords: Readonly<Record<Kill, string>> = {
  none: 'Everything is enforced again.',
  shadow: 'All policies are evaluated, counted and reported, and refuse nothing.',
  off: 'Every request passes, uncounted.',
}

/** The kill switch of the whole fleet. */
export function KillDialog({ now, ifMatch, onClose }: DialogProps & { now: Policies }) {
  const [kill, setKill] = useState<Kill>(now.kill === 'none' ? 'shadow' : 'none')
  const [base] = useState(ifMatch)
  return (
    <ActionDialog
      title="Kill switch"
      onClose={onClose}
      blocked={kill === now.kill}
      actions={[
        {
          label: kill === 'none' ? 'Enforce again' : `Switch to ${kill}`,
          look: kill === 'none' ? 'main' : 'danger',
          run: async (reason) => {
            const body = { kill, reason }
            await call('policies/kill', { method: 'POST', body, ifMatch: base })
            tell(`The kill switch is at ${kill}. ${killWords[kill]}`)
          },
        },
      ]}
    >
      <p>It holds for the whole fleet, within a second. Now it is at {now.kill}.</p>
      <Choice
        label="Mode"
        value={kill}
        options={[
          ['none', 'None'],
          ['shadow', 'Shadow'],
          ['off', 'Off'],
        ]}
        onValue={setKill}
      />
      <p class="muted">{killWords[kill]}</p>
      {now.killedBy === 'environment' && (
        <Notice tone="near">
          <p>
            The environment variable SLUICE_KILL_SWITCH of this process wins over what is set here.
          </p>
        </Notice>
      )}
    </ActionDialog>
  )
}

interface DiffDialogProps {
  readonly record: VersionRecord
  /** The version before it; `undefined`: it is the first that is kept. */
  readonly before: VersionRecord | undefined
  readonly onClose: () => void
}

/** Shows the changes of a version, or its differences from the version in force. */
export function DiffDialog({ record, before, onClose }: DiffDialogProps) {
  const [to, setTo] = useState<'before' | 'now'>(before ? 'before' : 'now')
  const path =
    to === 'before' && before
      ? `policies/diff?${new URLSearchParams({ from: before.id, to: record.id })}`
      : `policies/diff?${new URLSearchParams({ from: record.id })}`
  return (
    <Dialog
      title={`Version ${record.id}`}
      broad
      onClose={onClose}
      onSubmit={onClose}
      footer={
        <button type="submit" class="button">
          Close
        </button>
      }
    >
      <p>
        {record.author} on {moment(record.at)}: {record.reason}
      </p>
      {before && (
        <Choice
          label="Compare"
          value={to}
          options={[
            ['before', 'What it changed'],
            ['now', 'From it to now'],
          ]}
          onValue={setTo}
        />
      )}
      <DiffOf key={path} path={path} />
    </Dialog>
  )
}

/** Versions do not change. */
const diffMs = 60_000

function DiffOf({ path }: { path: string }) {
  const diff = usePolled<Diff>(path, diffMs)
  return (
    <Loaded polled={diff} what="The difference">
      {({ differences }) => <Differences differences={differences} />}
    </Loaded>
  )
}
