import type { Static } from '@sinclair/typebox'
import type { OverrideEntry } from '@sluice/policies'
import { ApiError } from '../stores/api-error.ts'
import type { Admin, Answering, Call } from './context.ts'
import { type KeyReference, readKey } from './key-reference.ts'
import { clientOf } from './keys.ts'
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
