import type { Static } from '@sinclair/typebox'
import { ApiError } from '../stores/api-error.ts'
import type { Answering, Call } from './context.ts'
import { readKey } from './key-reference.ts'
import { clientOf } from './keys.ts'
import { changed, policiesOf } from './policies.ts'
import type * as schemas from './schemas/keys.ts'

type Body = Static<typeof schemas.temporaryLimitRequest>

/** Sets a different limit for one identity until it expires: one override, in one version. */
export const temporaryLimit: Answering<unknown, Body> = async (call) => {
  const { policy, limit, until, reason } = call.body
  if (Date.parse(until) <= Date.now()) throw new ApiError(400, 'until must be in the future.')
  const key = await keyOf(call)
  const own = policiesOf(call.admin).file.overrides?.find(
    (each) => each.policy === policy && textOf(each.key) === textOf(key),
  )
  // An existing override of the identity keeps its mode.
  const value = { ...(own?.mode && { mode: own.mode }), key, limit }
  return changed(call, { set: [{ policy, field: 'override', value, until, reason }] })
}

/** Returns the key of one identity that the policy counts. */
async function keyOf({ admin, body }: Call<unknown, Body>) {
  const named = readKey(body.key, policiesOf(admin).keyNames)
  if (!('key' in named)) {
    throw new ApiError(400, 'Pass the key itself: an override needs more than a digest.')
  }
  const { key } = named
  if (Object.values(key).some((value) => String(value).includes('*'))) {
    throw new ApiError(
      400,
      'key must be one identity: a pattern is an override, which needs the role policies.',
    )
  }
  const { counted } = await clientOf(admin, key)
  if (counted.some(({ policy }) => policy.name === body.policy)) return key
  throw new ApiError(400, `No policy with this name counts the key: ${body.policy}.`)
}

function textOf(key: object): string {
  const texts = Object.entries(key).map(([name, value]) => [name, String(value)])
  return JSON.stringify(texts.sort())
}
