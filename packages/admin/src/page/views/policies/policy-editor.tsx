import { useState } from 'preact/hooks'
import { call } from '../../api/client.ts'
import type { Change, Policy } from '../../api/types.ts'
import { ActionDialog } from '../../parts/action-dialog.tsx'
import { ChangePreview, usePreview } from '../../parts/change-preview.tsx'
import { Choice, Field } from '../../parts/forms.tsx'
import { tell } from '../../parts/toasts.tsx'
import {
  type EntryToSet,
  entriesOf,
  faultsOf,
  formOf,
  limitText,
  windowText,
} from '../../words/policy-values.ts'
import type { OpenProps } from './dialogs.tsx'

/**
 * The form for fields that can change at run time. It shows the effect of a change during typing.
 */
export function PolicyEditor({ policy, ifMatch, onClose }: OpenProps & { policy: Policy }) {
  const [form, setForm] = useState(() => formOf(policy))
  const [base] = useState({ policy, ifMatch })
  const faults = faultsOf(form)
  const isWrong = Object.keys(faults).length > 0
  const set = isWrong ? [] : entriesOf(base.policy, form)
  const isUnchanged = set.length === 0
  const preview = usePreview('policies/changes', isUnchanged ? undefined : { set }, base.ifMatch)
  const send = async (entries: readonly EntryToSet[], reason: string, words: string) => {
    const options = { body: { set: entries, reason }, ifMatch: base.ifMatch }
    const { version } = await call<Change>('policies/changes', { method: 'POST', ...options })
    tell(`${words} Version ${version} applies here now, and in the fleet within a second.`)
  }
  const has = (field: Policy['fields'][number]) => policy.fields.includes(field)
  const field = (name: 'burst' | 'share') => ({
    value: form[name],
    fault: faults[name],
    onValue: (value: string) => setForm((before) => ({ ...before, [name]: value })),
  })
  const blocked = isWrong
    ? 'A value is wrong.'
    : isUnchanged
      ? 'Nothing is changed yet.'
      : preview.error !== undefined && 'This cannot be done.'
  return (
    <ActionDialog
      title={`Change ${policy.name}`}
      blocked={blocked}
      onClose={onClose}
      actions={[
        ...(has('mode')
          ? [
              {
                label: 'Try in shadow',
                look: 'shadow',
                title: 'The new values are counted and reported, but refuse nothing.',
                run: (reason: string) =>
                  send(inShadow(policy.name, set), reason, `${policy.name} is tried in shadow.`),
              } as const,
            ]
          : []),
        { label: 'Apply', run: (reason) => send(set, reason, `${policy.name} is changed.`) },
      ]}
    >
      <p class="muted">
        {policy.algorithm}, {limitText(policy.limit)}
        {windowText(policy.window)}. Raising or lowering a limit does not reset counts.
      </p>
      <div class="fields">
        {has('limit') &&
          Object.entries(form.limits).map(([place, value]) => (
            <Field
              key={place}
              label={`Limit ${place.replace('tiers ', '')}`.trim()}
              value={value}
              fault={faults[`limit ${place}`]}
              onValue={(text) =>
                setForm((before) => ({ ...before, limits: { ...before.limits, [place]: text } }))
              }
            />
          ))}
        {has('burst') && <Field label="Burst" hint="Units at once" {...field('burst')} />}
        {has('share') && (
          <Field label="Enforced for (%)" hint="Share of the keys" {...field('share')} />
        )}
        <Field
          label="Until"
          type="datetime-local"
          value={form.until}
          fault={faults.until}
          hint="Empty: until changed"
          onValue={(until) => setForm((before) => ({ ...before, until }))}
        />
      </div>
      {has('mode') && (
        <Choice
          label="Mode"
          value={form.mode}
          options={[
            ['enforce', 'Enforce'],
            ['shadow', 'Shadow'],
          ]}
          onValue={(mode) => setForm((before) => ({ ...before, mode }))}
        />
      )}
      <ChangePreview state={preview} />
    </ActionDialog>
  )
}

function inShadow(policy: string, set: readonly EntryToSet[]): readonly EntryToSet[] {
  const until = set.find((entry) => entry.until)?.until
  const others = set.filter(({ field }) => field !== 'mode' && field !== 'share')
  return [...others, { policy, field: 'mode', value: 'shadow', ...(until && { until }) }]
}
