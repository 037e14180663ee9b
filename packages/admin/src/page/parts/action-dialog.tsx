import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { ApiError } from '../api/client.ts'
import { refreshAll } from '../api/poll.ts'
import { Button, Fault } from './basics.tsx'
import { Dialog, Field } from './forms.tsx'
import { useIsAway } from './state-notices.tsx'

/** One button of the dialog that changes something. */
export interface Action {
  readonly label: string
  readonly look?: 'main' | 'deny' | 'shadow' | 'plain'
  /** @param reason for the audit trail, trimmed */
  readonly run: (reason: string) => Promise<unknown>
  readonly title?: string
}

interface ActionDialogProps {
  readonly title: string
  /** Enter triggers the last one. */
  readonly actions: readonly Action[]
  readonly onClose: () => void
  /** The reason, as far as known. */
  readonly reason?: string
  /** A message about missing or wrong input, which blocks the action. */
  readonly blocked?: string | false | undefined
  readonly children?: ComponentChildren
}

const conflictWords =
  'Someone else has changed the policies since you opened this. Nothing was changed: close it, check the new values, and try again.'

/** Asks for a reason before anything is changed, and shows why a change was refused. */
export function ActionDialog(props: ActionDialogProps) {
  const { title, actions, onClose, blocked, children } = props
  // The longest reason that the API accepts.
  const [reason, setReason] = useState((props.reason ?? '').slice(0, 500))
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const given = reason.trim()
  const away = useIsAway() && 'The store is unavailable, so nothing can be changed now.'
  const missing = away || blocked || (given === '' ? 'A reason is required.' : undefined)
  const run = async (action: Action | undefined) => {
    if (!action || isBusy || missing) return
    setBusy(true)
    setError(undefined)
    try {
      await action.run(given)
      onClose()
    } catch (failure) {
      setError(failure)
    }
    setBusy(false)
    refreshAll()
  }
  const isConflict = error instanceof ApiError && error.status === 409
  return (
    <Dialog
      title={title}
      onClose={onClose}
      onSubmit={() => void run(actions.at(-1))}
      footer={
        <>
          {missing && <span class="muted small grow">{missing}</span>}
          <Button onClick={onClose}>Cancel</Button>
          {actions.map((action, index) => (
            <Button
              key={action.label}
              type={index === actions.length - 1 ? 'submit' : undefined}
              look={action.look ?? 'main'}
              title={action.title}
              disabled={isBusy || missing !== undefined}
              onClick={index === actions.length - 1 ? undefined : () => void run(action)}
            >
              {action.label}
            </Button>
          ))}
        </>
      }
    >
      {children}
      <Field
        label="Reason"
        focus={missing !== undefined && !blocked}
        value={reason}
        onValue={setReason}
        placeholder="Reason, for the audit trail"
        hint="Appears in the audit trail with your name."
      />
      <Fault error={isConflict ? conflictWords : error} />
    </Dialog>
  )
}
