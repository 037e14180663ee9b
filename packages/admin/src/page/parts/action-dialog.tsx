import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { ApiError } from '../api/client.ts'
import { refreshAll } from '../api/poll.ts'
import { Button, Fault } from './basics.tsx'
import { Dialog, Field } from './forms.tsx'
import { useIsAway } from './state-notices.tsx'

/** One way out of the dialog that changes something. */
export interface Action {
  readonly label: string
  readonly look?: 'main' | 'deny' | 'shadow' | 'plain'
  /** @param reason for the audit trail, without spaces around it */
  readonly run: (reason: string) => Promise<unknown>
  readonly title?: string
}

interface ActionDialogProps {
  readonly title: string
  /** The last one is what Enter does. */
  readonly actions: readonly Action[]
  readonly onClose: () => void
  /** The reason, as far as it is known. */
  readonly reason?: string
  /** Words for something that is missing or wrong: nothing can be done yet. */
  readonly blocked?: string | false | undefined
  readonly children?: ComponentChildren
}

const conflictWords =
  'Somebody else has changed the policies since you opened this. Nothing was changed: close it, look at the new values, and change them again.'

/** Asks for a reason before anything is changed, and tells when the change was refused. */
export function ActionDialog(props: ActionDialogProps) {
  const { title, actions, onClose, blocked, children } = props
  // The longest reason that the API takes.
  const [reason, setReason] = useState((props.reason ?? '').slice(0, 500))
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const given = reason.trim()
  const away = useIsAway() && 'The store is away, so nothing can be changed now.'
  const missing = away || blocked || (given === '' ? 'It needs a reason.' : undefined)
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
        placeholder="Why, for the audit trail"
        hint="It stands in the audit trail beside your name."
      />
      <Fault error={isConflict ? conflictWords : error} />
    </Dialog>
  )
}
