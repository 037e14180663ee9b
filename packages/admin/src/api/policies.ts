import type { Static } from '@sinclair/typebox'
import type { PolicyEdit } from '@sluice/policies'
import { ApiError, fromStore, unfinished } from '../stores/api-error.ts'
import { affectedBy } from './affected.ts'
import type { Admin, Answering, Call } from './context.ts'
import { hiddenIn, listedPolicies, overridesOf, shownEntries } from './policy-lists.ts'
import type * as schemas from './schemas/policies.ts'

export const policies: Answering = ({ admin, who }) => {
  const live = policiesOf(admin)
  const { version, number, kill, killedBy, refused, entries } = live.state
  return {
    ...{ version, number, kill, killedBy, refused },
    policies: listedPolicies(live.file, live.policies),
    overrides: overridesOf(live.file, entries, who),
    entries: shownEntries(entries, who),
  }
}

export const diff: Answering<Static<typeof schemas.diffQuery>> = async ({ admin, who, query }) => {
  const live = policiesOf(admin)
  const { from, to = live.version } = query
  const differences = await fromStore(() => live.diff(from, to))
  return { from, to, differences: hiddenIn(differences, who) }
}

export const exported: Answering<Static<typeof schemas.exportQuery>> = async ({ admin, query }) => {
  const live = policiesOf(admin)
  const { version = live.version } = query
  return { version, text: await fromStore(() => live.export(version)) }
}

export const change: Answering<unknown, Static<typeof schemas.changeRequest>> = (call) => {
  const { set = [], remove = [] } = call.body
  if (set.length + remove.length === 0) {
    throw new ApiError(
      400,
      'Pass entries to set or to remove: { "set": [{ "policy", "field", "value" }] }.',
    )
  }
  return changed(call, editOf(call.body))
}

export const rollback: Answering<unknown, Static<typeof schemas.rollbackRequest>> = (call) =>
  changed(call, { rollback: call.body.version })

export const kill: Answering<unknown, Static<typeof schemas.killRequest>> = (call) =>
  changed(call, { kill: call.body.kill })

/** Parses entries. Their values are checked against the file schema when they are set. */
function editOf({ set = [], remove = [], reason }: Static<typeof schemas.changeRequest>) {
  return { set: set.map((entry) => ({ ...entry, reason })), remove } as PolicyEdit
}

type Changing = Call<unknown, { readonly reason: string; readonly dryRun?: boolean | undefined }>

/** Makes a change, or returns its result without making it. */
export async function changed(
  { admin, who, body, number }: Changing,
  edit: PolicyEdit,
): Promise<object> {
  const live = policiesOf(admin)
  const { reason, dryRun = false } = body
  if (!live.canChange) {
    throw new ApiError(
      400,
      'The policies have no store that keeps versions: openPolicies({ file, store }).',
    )
  }
  const before = live.file
  const preview = await fromStore(() => live.preview(edit, number === undefined ? {} : { number }))
  const affected = affectedBy(admin, { before, after: preview.file, edit })
  if (!dryRun) {
    const changing = fromStore(() => live.change(edit, { author: who.actor, reason, number }))
    await changing.catch((error: unknown) => Promise.reject(unfinished(error)))
    const target = { version: live.version }
    const action = `policies.${kindOf(edit)}`
    await admin.audit.report({ actor: who.actor, action, phase: 'done', reason, target })
    admin.reads.members.forget()
    admin.reads.history.forget()
  }
  const { version } = preview
  const differences = hiddenIn(preview.differences, who)
  // A version ends with the revision of the changes.
  const planned = Number(version.slice(version.lastIndexOf('.') + 1))
  return { version, number: planned, dryRun, differences, affected }
}

function kindOf({ rollback, kill }: PolicyEdit): string {
  if (rollback !== undefined) return 'rollback'
  return kill === undefined ? 'change' : 'kill'
}

export function policiesOf({ policies }: Admin): NonNullable<Admin['policies']> {
  if (policies) return policies
  throw new ApiError(
    404,
    'There are no policies that can change: createAdmin({ policies: await openPolicies({ … }) }).',
  )
}
