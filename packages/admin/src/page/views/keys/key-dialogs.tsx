import { useState } from 'preact/hooks'
import { call } from '../../api/client.ts'
import type { KeyAction, Lookup } from '../../api/types.ts'
import { count } from '../../format.ts'
import { type Action, ActionDialog } from '../../parts/action-dialog.tsx'
import { Field, Select } from '../../parts/forms.tsx'
import { tell } from '../../parts/toasts.tsx'
import { limitOf } from '../policies/policy-values.ts'
import { PolicySelect } from './policy-select.tsx'
import type { KeyReference } from './typed-key.ts'

export type KeyActionName = 'reset' | 'block' | 'unblock' | 'refund' | 'limit'

export interface KeyDialogProps {
  readonly keyReference: KeyReference
  /** The values by the names of keys, where they are known. */
  readonly namedKey: Readonly<Record<string, string>> | undefined
  readonly label: string
  readonly lookup: Lookup
  /** Called after the state of the key has changed. */
  readonly onDone: () => void
  readonly onClose: () => void
}

/** Asks before an action on a key, and tells the result. */
export function KeyDialog({ action, ...props }: KeyDialogProps & { action: KeyActionName }) {
  switch (action) {
    case 'block':
      return <BlockDialog {...props} />
    case 'refund':
      return <RefundDialog {...props} />
    case 'limit':
      return <LimitDialog {...props} />
    case 'unblock':
      return (
        <Simple
          {...props}
          path="keys/unblock"
          title={`Unblock ${props.label}`}
          done="is not blocked any more"
        >
          Its block is lifted, and its strikes are forgotten. What it has taken still counts.
        </Simple>
      )
    default:
      return <ResetDialog {...props} />
  }
}

function send(
  props: KeyDialogProps,
  path: string,
  body: object,
  words: (answer: KeyAction) => string,
) {
  return async (reason: string) => {
    const all = { key: props.keyReference, ...body, reason }
    const answer = await call<KeyAction>(path, { method: 'POST', body: all })
    tell(words(answer))
    props.onDone()
  }
}

interface SimpleProps extends KeyDialogProps {
  readonly path: string
  readonly title: string
  readonly done: string
  readonly children: string
}

function Simple({ path, title, done, children, ...props }: SimpleProps) {
  const words = ({ found, note = '' }: KeyAction) =>
    found ? `${props.label} ${done}.` : `There was nothing to change for ${props.label}. ${note}`
  const action: Action = { label: title.split(' ')[0] ?? title, run: send(props, path, {}, words) }
  return (
    <ActionDialog title={title} onClose={props.onClose} actions={[action]}>
      <p>{children}</p>
    </ActionDialog>
  )
}

function ResetDialog(props: KeyDialogProps) {
  const [policy, setPolicy] = useState('')
  const words = ({ found, note = '' }: KeyAction) =>
    found
      ? `${props.label} is unlocked: what it had taken is forgotten.`
      : `There was nothing to forget for ${props.label}. ${note}`
  const body = policy === '' ? {} : { policies: [policy] }
  return (
    <ActionDialog
      title={`Reset ${props.label}`}
      onClose={props.onClose}
      actions={[{ label: 'Reset', run: send(props, 'keys/reset', body, words) }]}
    >
      <p>What the identity has taken is forgotten: it has its full limit again.</p>
      <Select
        label="Policies"
        value={policy}
        options={[
          ['', 'All policies, and its block'],
          ...policiesOf(props.lookup).map((name) => [name, name] as const),
        ]}
        onValue={setPolicy}
      />
    </ActionDialog>
  )
}

function BlockDialog(props: KeyDialogProps) {
  const [duration, setDuration] = useState('1h')
  const isRight = /^\d+(ms|s|m|h|d)$/.test(duration.trim())
  const words = ({ found }: KeyAction) =>
    found
      ? `${props.label} is blocked for ${duration}.`
      : `No policy has a penalty that could block ${props.label}.`
  const run = send(props, 'keys/block', { for: duration.trim() }, words)
  return (
    <ActionDialog
      title={`Block ${props.label}`}
      onClose={props.onClose}
      blocked={!isRight}
      actions={[{ label: 'Block', look: 'danger', run }]}
    >
      <p>Every request of the identity is refused for this time, under each penalty.</p>
      <Field
        label="For"
        value={duration}
        onValue={setDuration}
        hint="Such as 15m, 1h or 7d"
        fault={isRight ? undefined : 'A number with a unit: 30s, 15m, 1h or 7d'}
      />
    </ActionDialog>
  )
}

function RefundDialog(props: KeyDialogProps) {
  const [policy, setPolicy] = useState(policiesOf(props.lookup)[0] ?? '')
  const [units, setUnits] = useState('1')
  const isRight = /^[1-9]\d*$/.test(units)
  const words = ({ policies }: KeyAction) => {
    const given = policies.reduce((sum, each) => sum + (each.units ?? 0), 0)
    return `${count(given)} units of ${policy} are given back to ${props.label}.`
  }
  const run = send(props, 'keys/refund', { policy, units: Number(units) }, words)
  return (
    <ActionDialog
      title={`Refund ${props.label}`}
      onClose={props.onClose}
      blocked={!isRight || policy === ''}
      actions={[{ label: 'Refund', run }]}
    >
      <p>For one window of the policy the identity may take as many units more.</p>
      <div class="fields">
        <PolicySelect names={policiesOf(props.lookup)} value={policy} onValue={setPolicy} />
        <Field
          label="Units"
          value={units}
          onValue={setUnits}
          fault={isRight ? undefined : 'A whole number from 1 on'}
        />
      </div>
    </ActionDialog>
  )
}

/** A day, from the clock of the reader, in the form of the input. */
function tomorrow(): string {
  const now = new Date()
  const local = new Date(now.getTime() + 86_400_000 - now.getTimezoneOffset() * 60_000)
  return local.toISOString().slice(0, 16)
}

function LimitDialog(props: KeyDialogProps) {
  const [policy, setPolicy] = useState(policiesOf(props.lookup)[0] ?? '')
  const [limit, setLimit] = useState('')
  const [until, setUntil] = useState(tomorrow)
  const value = limitOf(limit)
  const isRight = typeof value === 'number' || value === 'unlimited'
  const ends = Date.parse(until)
  const isFuture = ends > Date.now()
  const { namedKey, label, onDone } = props
  const run = async (reason: string) => {
    const body = {
      key: namedKey,
      policy,
      limit: value,
      until: new Date(ends).toISOString(),
      reason,
    }
    await call('keys/limit', { method: 'POST', body })
    tell(`${label} has another limit of ${policy}, in force within a second.`)
    onDone()
  }
  return (
    <ActionDialog
      title={`Temporary limit for ${label}`}
      onClose={props.onClose}
      blocked={!isRight || !isFuture || policy === ''}
      actions={[{ label: 'Set the limit', run }]}
    >
      <p>An override for this identity, which ends by itself.</p>
      <div class="fields">
        <PolicySelect names={policiesOf(props.lookup)} value={policy} onValue={setPolicy} />
        <Field
          label="Limit"
          value={limit}
          onValue={setLimit}
          hint="A number, or unlimited"
          fault={limit === '' || isRight ? undefined : `A whole number from 0 on, or 'unlimited'`}
        />
        <Field
          label="Until"
          type="datetime-local"
          value={until}
          onValue={setUntil}
          fault={isFuture ? undefined : 'A time in the future'}
        />
      </div>
    </ActionDialog>
  )
}

/** A penalty is no policy: it is blocked and unblocked alone. */
function policiesOf({ policies }: Lookup): readonly string[] {
  return policies.filter(({ isPenalty }) => !isPenalty).map(({ policy }) => policy)
}
