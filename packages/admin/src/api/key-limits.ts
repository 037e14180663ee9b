import type { Static } from '@sinclair/typebox'
import { algorithmOf } from '@sluice/core/backend'
import type { CountedKey, OverrideEntry } from '@sluice/policies'
import { ApiError } from '../stores/api-error.ts'
import type { Admin, Answering, Call } from './context.ts'
import { type KeyReference, readKey } from './key-reference.ts'
import { clientOf, peek } from './keys.ts'
import { changed, policiesOf } from './policies.ts'
import type * as schemas from './schemas/keys.ts'

type Key = OverrideEntry['key']

/** Another limit for one identity, until it ends by itself: one override, in one version. */
export const temporaryLimit: Answering<
  unknown,
  Static<typeof schemas.temporaryLimitRequest>
> = async (call) => {
  const { policy, limit, until, reason } = call.body
  if (Date.parse(until) <= Date.now()) throw new ApiError(400, 'until must be in the future.')
  const { key } = await countedBy(call)
  const value = { ...modeOf(call.admin, policy, key), key, limit }
  return changed(call, { set: [{ policy, field: 'override', value, until, reason }] })
}

/** Units that count stay counted, and leave in time; for one window there is room for more. */
export const refund: Answering<unknown, Static<typeof schemas.refundRequest>> = async (call) => {
  const { admin, body } = call
  const { policy: name, reason, dryRun = false } = body
  const { key, digest, found } = await countedBy(call)
  checkRefundable(admin, found, key)
  const [outcome] = await peek([found])
  const units = Math.min(body.units, outcome?.used ?? body.units)
  const endsMs = Date.now() + found.policy.windowMs
  if (units > 0) {
    const until = new Date(endsMs).toISOString()
    const value = { ...modeOf(admin, name, key), key, limit: found.limit + units }
    await changed(call, { set: [{ policy: name, field: 'override', value, until, reason }] })
  }
  const isFound = units > 0
  const policies = [{ policy: name, found: isFound, units, ...(isFound && { until: endsMs }) }]
  return { digest, found: isFound, dryRun, policies }
}

/** Finds the policy that an override is for: it counts the key, which names one identity. */
async function countedBy({
  admin,
  body,
}: Call<unknown, { readonly key: KeyReference; readonly policy: string }>) {
  const named = readKey(body.key, policiesOf(admin).keyNames)
  if (!('key' in named)) {
    throw new ApiError(400, 'Give the key itself: a digest does not tell whom an override is for.')
  }
  const { key } = named
  checkExact(key)
  const { digest, counted } = await clientOf(admin, key)
  const found = counted.find(({ policy }) => policy.name === body.policy)
  if (found) return { key, digest, found }
  throw new ApiError(400, `No policy of this name counts the key: ${body.policy}.`)
}

function checkRefundable(
  admin: Admin,
  { policy, limit, limitIsKnown }: CountedKey,
  key: Key,
): void {
  const { name } = policy
  if (algorithmOf(policy).counts !== 'units') {
    throw new ApiError(400, `${name} counts no units that could be given back.`)
  }
  if (!limitIsKnown || limit === Number.POSITIVE_INFINITY) {
    throw new ApiError(
      400,
      `The limit of ${name} is not one number for this key: set a temporary limit.`,
    )
  }
  const isTaken = policiesOf(admin).state.entries.some(
    (entry) => entry.field === 'override' && entry.policy === name && sameKey(entry.value.key, key),
  )
  if (isTaken) {
    throw new ApiError(400, `The key has a temporary limit under ${name} already: change that one.`)
  }
}

function checkExact(key: Key): void {
  if (!Object.values(key).some((value) => String(value).includes('*'))) return
  throw new ApiError(
    400,
    'key must be one identity: a pattern is an override, which needs the role policies.',
  )
}

/** An override of the identity goes on in its mode. */
function modeOf(admin: Admin, policy: string, key: Key): Pick<OverrideEntry, 'mode'> {
  const found = policiesOf(admin).file.overrides?.find(
    (override) => override.policy === policy && sameKey(override.key, key),
  )
  return found?.mode === undefined ? {} : { mode: found.mode }
}

function sameKey(one: Key, other: Key): boolean {
  return textOf(one) === textOf(other)
}

function textOf(key: Key): string {
  return JSON.stringify(
    Object.entries(key)
      .map(([name, value]) => [name, String(value)])
      .sort(),
  )
}
