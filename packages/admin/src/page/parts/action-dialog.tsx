import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { ApiError, wordsOf } from '../api/client.ts'
import { refreshAll } from '../api/poll.ts'
import { Notice } from './basics.tsx'
import { Dialog, Field } from './forms.tsx'

/** One way out of the dialog that changes something. */
export interface Action {
  readonly label: string
  readonly look?: 'main' | 'danger' | 'shadow'
  /** @param reason for the audit trail, without spaces around it */
  readonly run: (reason: string) => Promise<unknown>
  readonly title?: string
}

interface ActionDialogProps {
  readonly title: string
  /** The last one is what Enter does. */
  readonly actions: readonly Action[]
  readonly onClose: () => void
  /** Something is missing or wrong: nothing can be done yet. */
  readonly blocked?: boolean
  readonly broad?: boolean
  readonly children?: ComponentChildren
}

/** Asks for a reason before anything is changed, and tells when the change was refused. */
export function ActionDialog(props: ActionDialogProps) {
  const { title, actions, onClose, blocked = false, broad = false, children } = props
  const [reason, setReason] = useState('')
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const given = reason.trim()
  const run = async (action: Action | undefined) => {
    if (!action || isBusy || blocked || given === '') return
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
      broad={broad}
      onClose={onClose}
      onSubmit={() => void run(actions.at(-1))}
      footer={
        <>
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          {actions.map((action, index) => (
            <button
              key={action.label}
              type={index === actions.length - 1 ? 'submit' : 'button'}
              class={`button ${action.look ?? 'main'}`}
              title={action.title}
              disabled={isBusy || blocked || given === ''}
              onClick={index === actions.length - 1 ? undefined : () => void run(action)}
            >
              {action.label}
            </button>
          ))}
        </>
      }
    >
      {children}
      <Field
        label="Reason"
        value={reason}
        onValue={setReason}
        placeholder="Why, for the audit trail"
        hint="It stands in the audit trail beside your name."
      />
      {error !== undefined && (
        <div role="alert">
          <Notice tone="deny">
            <p>
              {isConflict
                ? 'Somebody else has changed the policies since you opened this. Nothing was changed: close it, look at the new values, and change them again.'
                : wordsOf(error)}
            </p>
          </Notice>
        </div>
      )}
    </Dialog>
  )
}
