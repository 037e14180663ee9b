import { useState } from 'preact/hooks'
import { call } from '../../api/client.ts'
import type { KeyAction, KeyPolicy, Lookup } from '../../api/types.ts'
import { ActionDialog } from '../../parts/action-dialog.tsx'
import { Choice, Field, Select } from '../../parts/forms.tsx'
import { tell } from '../../parts/toasts.tsx'
import { count, endText, plain } from '../../words/format.ts'
import { byCause, verdictOn, waitOf } from './verdict.ts'

export type KeyActionName = keyof typeof acts | 'raise'

interface KeyDialogProps {
  readonly label: string
  readonly lookup: Lookup
  /** Formats the window of a policy as part of its limit: ` / 1m`. */
  readonly windowOf: (policy: string) => string
  readonly onDone: () => void
  readonly onClose: () => void
}

const acts = {
  reset: ['Reset its count', 'The count is reset: the identity has its full limit again.'],
  unblock: [
    'Unblock',
    'Its block is lifted, and its strikes are reset. Units already taken still count.',
  ],
  block: ['Block', 'Every request of the identity is refused for this time, under each penalty.'],
} as const

/** Asks before an action on a key, and shows the result. */
export function ActDialog({
  action,
  label,
  lookup,
  onDone,
  onClose,
}: KeyDialogProps & { action: keyof typeof acts }) {
  const names = limitsOf(lookup).map(({ policy }) => policy)
  const [policy, setPolicy] = useState('')
  const [time, setTime] = useState('1h')
  const [verb, effect] = acts[action]
  const bodies = {
    reset: policy === '' ? {} : { policies: [policy] },
    unblock: {},
    block: { for: time.trim() },
  }
  const fault =
    action === 'block' && !/^\d+(ms|s|m|h|d)$/.test(time.trim())
      ? 'A number with a unit: 30s, 15m, 1h or 7d'
      : undefined
  const run = async (reason: string) => {
    const body = { key: lookup.key ?? { digest: lookup.digest }, ...bodies[action], reason }
    const answer = await call<KeyAction>(`keys/${action}`, { method: 'POST', body })
    const words = {
      reset: `${label} is unlocked: its count was reset.`,
      unblock: `${label} is no longer blocked.`,
      block: `${label} is blocked for ${time}.`,
    }
    const nothing = `There was nothing to change for ${label}. ${answer.note ?? ''}`
    tell(answer.found ? words[action] : nothing)
    onDone()
  }
  return (
    <ActionDialog
      title={`${verb}: ${label}`}
      onClose={onClose}
      blocked={fault}
      actions={[{ label: verb, look: action === 'block' ? 'deny' : 'main', run }]}
    >
      <p>{effect}</p>
      {action === 'block' && (
        <Field
          label="For"
          value={time}
          onValue={setTime}
          hint="Such as 15m, 1h or 7d"
          fault={fault}
        />
      )}
      {action === 'reset' && (
        <Select
          label="Policy"
          value={policy}
          options={[['', 'All policies, and its block'], ...names]}
          onValue={setPolicy}
        />
      )}
    </ActionDialog>
  )
}

const times = [
  ['15', '15 min'],
  ['60', '1 h'],
  ['1440', '24 h'],
] as const

/** Raises an identity's limit for a time, for the denying policy or another one. */
export function RaiseDialog({ label, lookup, windowOf, onDone, onClose }: KeyDialogProps) {
  const limits = limitsOf(lookup)
  const { tone, words } = verdictOn(lookup)
  const [policy, setPolicy] = useState(limits[0]?.policy ?? '')
  const [minutes, setMinutes] = useState<(typeof times)[number][0]>('60')
  const { limit: now, perWindow = 0 } = limits.find((each) => each.policy === policy) ?? {}
  const [chosen, setAmount] = useState<'2' | '5' | 'unlimited' | 'other'>('2')
  const [other, setOther] = useState('')
  const amount = typeof now === 'number' || chosen === 'unlimited' ? chosen : 'other'
  const isRight = amount !== 'other' || /^\d{1,15}$/.test(other)
  const asked = amount === 'other' ? Number(other) : Number(now) * Number(amount)
  const limit = amount === 'unlimited' ? amount : asked
  const until = Date.now() + Number(minutes) * 60_000
  const from = typeof now === 'number' ? `${count(now)} → ` : ''
  const text = `${plain(limit)}${windowOf(policy)}`
  const still = lookup.policies.filter(({ mode, allowed, policy: name }) => {
    return mode === 'enforce' && allowed === false && name !== policy
  })
  const isBlocked = still.some(({ isPenalty }) => isPenalty)
  const raise = (unblocks: boolean) => async (reason: string) => {
    const until = new Date(Date.now() + Number(minutes) * 60_000).toISOString()
    const { key } = lookup
    await call('keys/limit', { method: 'POST', body: { key, policy, limit, until, reason } })
    if (unblocks) await call('keys/unblock', { method: 'POST', body: { key, reason } })
    const also = unblocks ? ', and is no longer blocked' : ''
    tell(`${label} may take ${text} under ${policy} until ${endText(Date.parse(until))}${also}.`)
    onDone()
  }
  return (
    <ActionDialog
      title={`Raise the limit of ${label}`}
      onClose={onClose}
      blocked={policy === '' ? 'No policy limits it.' : !isRight && 'It needs a limit.'}
      reason={tone === 'deny' ? words : ''}
      actions={[
        { label: 'Raise', run: raise(false), look: isBlocked ? 'plain' : 'main' },
        ...(isBlocked ? [{ label: 'Raise and unblock', run: raise(true) }] : []),
      ]}
    >
      <Select
        label="Policy"
        value={policy}
        options={limits.map((each) => each.policy)}
        onValue={setPolicy}
      />
      <div class="row ends filters">
        <Choice
          label="Limit"
          value={amount}
          options={[
            ...(typeof now === 'number'
              ? (['2', '5'] as const).map((by) => [by, `×${by}`] as const)
              : []),
            ['unlimited', 'Unlimited'],
            ['other', 'Other'],
          ]}
          onValue={setAmount}
        />
        <Choice label="For" value={minutes} options={times} onValue={setMinutes} />
      </div>
      {amount === 'other' && (
        <Field
          label="New limit"
          value={other}
          onValue={setOther}
          fault={other === '' || isRight ? undefined : 'A whole number, 0 or more'}
        />
      )}
      <p aria-live="polite">
        {isRight &&
          policy !== '' &&
          `${label}: ${policy} ${from}${text} until ${endText(until)}, then as before. `}
        {isRight && typeof limit === 'number' && perWindow > limit && (
          <span class="toned near">
            It requested about {plain(Math.round(perWindow))}
            {windowOf(policy)} lately, so {policy} will deny the rest.
          </span>
        )}
      </p>
      {still.map((of) => (
        <p key={of.policy} class="toned near">
          {of.policy} still {of.isPenalty ? 'blocks' : 'denies'} it{waitOf(of)}.
          {of.isPenalty && ' “Raise and unblock” lifts the block as well.'}
        </p>
      ))}
    </ActionDialog>
  )
}

/** The policies with a limit, the denying one first, and shadow policies last. */
export function limitsOf({ policies }: Lookup): readonly KeyPolicy[] {
  return byCause(policies).filter(({ isPenalty }) => !isPenalty)
}
