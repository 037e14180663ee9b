import type { Entry, Policies, Policy, VersionRecord } from '../../api/types.ts'
import {
  DiffDialog,
  type EntryToRemove,
  KillDialog,
  RemoveDialog,
  RollbackDialog,
} from './dialogs.tsx'
import { PolicyEditor } from './policy-editor.tsx'

/** A dialog about policies, and its subject. */
export type Open =
  | { readonly what: 'edit'; readonly policy: Policy }
  | { readonly what: 'remove'; readonly entry: EntryToRemove }
  | { readonly what: 'rollback'; readonly record: VersionRecord }
  | { readonly what: 'kill' }
  | {
      readonly what: 'diff'
      readonly record: VersionRecord
      readonly before: VersionRecord | undefined
    }

/** Properties of the lists whose rows open dialogs. */
export interface ListProps {
  readonly mayChange: boolean
  readonly onOpen: (open: Open) => void
}

interface OpenDialogProps {
  readonly open: Open
  readonly policies: Policies | undefined
  readonly ifMatch: string | undefined
  readonly onClose: () => void
}

/** Shows the dialog that is open. */
export function OpenDialog({ open, policies, ifMatch, onClose }: OpenDialogProps) {
  switch (open.what) {
    case 'remove':
      return <RemoveDialog entry={open.entry} ifMatch={ifMatch} onClose={onClose} />
    case 'rollback':
      return <RollbackDialog record={open.record} ifMatch={ifMatch} onClose={onClose} />
    case 'diff':
      return <DiffDialog record={open.record} before={open.before} onClose={onClose} />
    case 'kill':
      return policies && <KillDialog now={policies} ifMatch={ifMatch} onClose={onClose} />
    default:
      return (
        policies && (
          <PolicyEditor
            policy={open.policy}
            entries={policies.entries.filter((entry) => isValueOf(entry, open.policy))}
            ifMatch={ifMatch}
            onClose={onClose}
          />
        )
      )
  }
}

/** Tells whether an entry changes a value of the policy itself. */
export function isValueOf({ policy, field }: Entry, { name }: Policy): boolean {
  return policy === name && field !== 'override'
}
