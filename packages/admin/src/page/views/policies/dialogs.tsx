import type { ComponentChildren, VNode } from 'preact'
import { useState } from 'preact/hooks'
import { call } from '../../api/client.ts'
import { usePolled } from '../../api/poll.ts'
import type { AuditRecord, Change, Policies, Traffic } from '../../api/types.ts'
import { ActionDialog } from '../../parts/action-dialog.tsx'
import { Notice } from '../../parts/basics.tsx'
import { ChangePreview, usePreview } from '../../parts/change-preview.tsx'
import { Choice } from '../../parts/forms.tsx'
import { tell } from '../../parts/toasts.tsx'
import { killModes, nameOf } from '../../words/change-words.ts'
import { brief, moment } from '../../words/format.ts'

export interface OpenProps {
  /** The version shown: a change in between is a conflict. */
  readonly ifMatch: string | undefined
  readonly onClose: () => void
}

export type Opened = (props: OpenProps) => VNode

export interface ListProps {
  readonly mayChange: boolean
  readonly onOpen: (dialog: Opened) => void
}

interface EditDialogProps extends OpenProps {
  readonly title: string
  readonly label: string
  readonly path: string
  /** The request without its reason. */
  readonly body: object
  readonly done: (version: string) => string
  readonly reason?: string
  readonly children: ComponentChildren
}

function EditDialog(props: EditDialogProps) {
  const { path, body, done, ifMatch, children, label, ...rest } = props
  const [base] = useState(ifMatch)
  const preview = usePreview(path, body, base)
  const run = async (reason: string) => {
    const options = { body: { ...body, reason }, ifMatch: base }
    const { version } = await call<Change>(path, { method: 'POST', ...options })
    tell(done(version))
  }
  return (
    <ActionDialog
      {...rest}
      blocked={preview.error !== undefined && 'This cannot be done.'}
      actions={[{ label, look: 'deny', run }]}
    >
      {children}
      <ChangePreview state={preview} />
    </ActionDialog>
  )
}

interface EntryToRemove {
  readonly policy: string
  readonly field: string
  readonly key?: Readonly<Record<string, string | number>>
}

/** Undoes a change: the file's value applies again. */
export function RemoveDialog({
  remove,
  ...props
}: OpenProps & { remove: readonly EntryToRemove[] }) {
  const fields = remove.map(({ field }) => field).join(' and ')
  const { policy, key } = remove[0] ?? {}
  const what = `the ${fields} of ${policy}${key ? ` for ${nameOf(key)}` : ''}`
  return (
    <EditDialog
      {...props}
      title={`Undo ${what}`}
      label="Undo"
      path="policies/changes"
      body={{ remove }}
      done={() => `Undone: ${what}.`}
    >
      <p>The file's value applies again.</p>
    </EditDialog>
  )
}

/** Restores the changes of the previous version. */
export function UndoDialog({
  record,
  before,
  isLast,
  ...props
}: OpenProps & { record: AuditRecord; before: string; isLast: boolean }) {
  return (
    <EditDialog
      {...props}
      title={`Undo ${record.target?.version ?? ''}`}
      label="Undo"
      path="policies/rollback"
      body={{ version: before }}
      reason={`undo: ${record.reason}`}
      done={(version) => `Undone: version ${version} restored the previous values.`}
    >
      <p>
        {record.actor} made it on {moment(record.at)}: {record.reason}
      </p>
      <p class="muted">
        The previous values, from version {before}, take its place; the file stays as it is.
        {!isLast && ' Later changes are undone too.'}
      </p>
    </EditDialog>
  )
}

export function KillDialog({ now, ifMatch, onClose }: OpenProps & { now: Policies }) {
  const [kill, setKill] = useState(now.kill)
  const [base] = useState(ifMatch)
  const { data } = usePolled<Traffic>('traffic')
  const [, label, effect] = killModes.find(([mode]) => mode === kill) ?? killModes[0]
  const perSecond = data ? (data.denied * 1_000) / Math.max(1_000, data.spanMs) : 0
  const isPassing = kill !== 'none' && now.kill === 'none' && perSecond > 0
  return (
    <ActionDialog
      title="Kill switch"
      onClose={onClose}
      blocked={kill === now.kill && `“${label}” already applies.`}
      actions={[
        {
          label,
          look: kill === 'none' ? 'main' : 'deny',
          run: async (reason) => {
            const body = { kill, reason }
            await call('policies/kill', { method: 'POST', body, ifMatch: base })
            tell(`${label}: ${effect}`)
          },
        },
      ]}
    >
      <p>It applies to the whole fleet within a second.</p>
      <Choice
        label="Mode"
        value={kill}
        options={killModes.map(([mode, text]) => [mode, text] as const)}
        onValue={setKill}
      />
      <p class={kill === 'off' ? 'toned deny' : 'muted'}>
        {effect}
        {isPassing && ` About ${brief(perSecond)} refusals a second would pass.`}
      </p>
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
