import type { Static } from '@sinclair/typebox'
import { type Check, digestOf, type PeekedOutcome, type Policy, windowMsOf } from '@sluice/core'
import { algorithmOf, peekAt, usageOf } from '@sluice/core/backend'
import { labelOf, topKeysWindows } from '@sluice/metrics'
import type { CountedKey } from '@sluice/policies'
import { ApiError, fromStore } from '../stores/api-error.ts'
import type { Admin, Answering, Call } from './context.ts'
import { isBareValue, type KeyReference, kindOf, readKey } from './key-reference.ts'
import { topLists } from './live.ts'
import { takenUnder } from './near.ts'
import { policiesOf } from './policies.ts'
import type * as schemas from './schemas/keys.ts'

/** Time limit (ms) for a store to scan a bounded number of its keys. */
const scanDeadlineMs = 15_000

export interface Identity {
  readonly digest: string
  readonly kind: string
  /** Values by key name, if known. */
  readonly key?: Readonly<Record<string, string | number>>
  readonly counted: readonly CountedKey[]
  /** Why an action may not concern this identity. */
  readonly doubt?: string
}

export const lookup: Answering<unknown, Static<typeof schemas.lookupRequest>> = async ({
  admin,
  body,
}) => {
  const { digest, key, counted } = await soughtBy(admin, body.key)
  const outcomes = await peekUnlessAway(admin, counted)
  const states = counted.map((each, index) =>
    stateOf(admin, each, digest, outcomes ? outcomes[index] : 'unknown'),
  )
  const found = outcomes?.some(isUsed)
  const live = new Set(policiesOf(admin).policies.map(({ name }) => name))
  return {
    digest,
    // A caller that passes the names of a key knows its values.
    key: typeof body.key === 'string' ? key : undefined,
    name: nameOf(admin, digest),
    found: found ?? true,
    ...(found === undefined && {
      isAway: true,
      note: 'The store is unavailable: its counts are unknown.',
    }),
    ...(found === false && noteOn(counted)),
    policies: states,
    inCode: denialsOf(admin, digest).filter(({ policy }) => !live.has(policy)),
  }
}

export const reset: Answering<unknown, Static<typeof schemas.resetRequest>> = async (call) => {
  const identity = await clientOf(call.admin, call.body.key)
  const { policies: names } = call.body
  const unknown = names?.find(
    (name) => !identity.counted.some(({ policy }) => policy.name === name),
  )
  if (unknown !== undefined)
    throw new ApiError(400, `No policy with this name counts the key: ${unknown}.`)
  const counted = identity.counted.filter(({ policy }) => names?.includes(policy.name) ?? true)
  return acted(
    call,
    'keys.reset',
    { ...identity, counted },
    { wouldFind: isUsed, act: (counted) => counted.limiter.resetChecks([checkOf(counted, 1)]) },
  )
}

export const block: Answering<unknown, Static<typeof schemas.blockRequest>> = async (call) => {
  const durationMs = windowMsOf(call.body.for, 'for')
  const identity = await penaltiesOf(call)
  return acted(call, 'keys.block', identity, {
    wouldFind: (outcome) => outcome?.allowed === false,
    until: () => Date.now() + durationMs,
    act(counted) {
      const { cost: _, ...check } = checkOf(counted, 1)
      return counted.limiter.blockChecks([{ ...check, blockMs: durationMs }])
    },
  })
}

export const unblock: Answering<unknown, Static<typeof schemas.unblockRequest>> = async (call) =>
  acted(call, 'keys.unblock', await penaltiesOf(call), {
    wouldFind: isUsed,
    act: (counted) => counted.limiter.resetChecks([checkOf(counted, 1)]),
  })

export const unlock: Answering<unknown, Static<typeof schemas.unlockRequest>> = async ({
  admin,
  who,
  body,
}) => {
  const { policy: name, cursor, reason, dryRun = false } = body
  const policy = policiesOf(admin).policies.find((each) => each.name === name)
  if (!policy) throw new ApiError(404, `There is no policy ${name}.`)
  const store = admin.store()
  if (!store?.keys?.forgetPolicy) throw new ApiError(400, 'This store cannot list its keys.')
  const forget = async () => {
    const { keys, cursor: next } = await fromStore(
      (control) => store.keys?.forgetPolicy?.(policy, { cursor, dryRun, control }) ?? { keys: 0 },
      scanDeadlineMs,
    )
    return { policy: name, keys, cursor: next, dryRun }
  }
  if (dryRun) return forget()
  const act = { actor: who.actor, action: 'keys.unlock', reason, target: { policy: name } }
  return admin.audit.recorded(act, forget)
}

type Acting = Call<
  unknown,
  { readonly key: KeyReference; readonly reason: string; readonly dryRun?: boolean | undefined }
>

interface Action {
  /** Determines from a peek whether there is anything to change. */
  readonly wouldFind: (outcome: PeekedOutcome | undefined) => boolean
  readonly until?: () => number
  readonly act: (counted: CountedKey) => Promise<boolean>
}

async function acted(
  { admin, who, body }: Acting,
  action: string,
  { digest, kind, counted, doubt }: Identity,
  { wouldFind, until, act }: Action,
): Promise<object> {
  const { reason, dryRun = false } = body
  const outcomes = dryRun ? await peek(counted) : []
  const run = async () => {
    const policies = []
    for (const [index, each] of counted.entries()) {
      const found = dryRun ? wouldFind(outcomes[index]) : await fromStore(() => act(each))
      policies.push({ policy: each.policy.name, found, ...(until && { until: until() }) })
    }
    const isThere = policies.some((each) => each.found)
    const found = until !== undefined || isThere
    const note = doubt === undefined ? !isThere && noteOn(counted) : { note: doubt }
    return { digest, found, dryRun, ...note, policies }
  }
  if (dryRun) return run()
  const target = { digest, kind, policies: counted.map(({ policy }) => policy.name) }
  const result = await admin.audit.recorded({ actor: who.actor, action, reason, target }, run)
  admin.reads.audit.forget()
  return result
}

async function penaltiesOf({ admin, body }: Acting): Promise<Identity> {
  const identity = await clientOf(admin, body.key)
  const counted = identity.counted.filter(({ policy }) => isPenalty(policy))
  // Nothing tells whose key a digest is, but the policies under which it has been counted.
  const outcomes = identity.kind === 'digest' ? await peek(identity.counted) : []
  const kinds = identity.counted.flatMap((each, i) => (isUsed(outcomes[i]) ? each.names : []))
  const others = kinds.filter((kind) => !counted.some((each) => each.names.includes(kind)))
  if (counted.length > 0 && others.length === 0) return { ...identity, counted }
  if (others.length < kinds.length) {
    const doubt = `The penalty does not count ${others.join(' or ')}: for such a key, nothing changes. Pass the key itself to be sure.`
    return { ...identity, counted, doubt }
  }
  throw new ApiError(
    400,
    `No penalty counts this key, so a block would have no effect; set penalty: { after: never } in the policy file, without key or with a key of this kind.`,
    { code: 'SLUICE_PENALTY_MISSING' },
  )
}

/**
 * Finds the client that an action on keys is about. Excludes the key of a route, since acting on it
 * would affect everybody.
 */
export async function clientOf(admin: Admin, reference: KeyReference): Promise<Identity> {
  const identity = await identityOf(admin, reference)
  const counted = identity.counted.filter(({ isOfRoute }) => !isOfRoute)
  if (counted.length > 0) return { ...identity, counted }
  throw new ApiError(
    400,
    'key must be one identity, but a route is shared by everybody: with the role policies, use policies/changes to set its limit, and keys/unlock to reset it.',
  )
}

/** Finds the identity for a plain value, and the name for a digest. */
async function soughtBy(admin: Admin, reference: KeyReference): Promise<Identity> {
  const { keyNames } = policiesOf(admin)
  if (isBareValue(reference, keyNames)) {
    for (const name of keyNames) {
      const found = await identityOf(admin, { [name]: reference.trim() }).catch(() => undefined)
      if (!found) continue
      if (denialsOf(admin, found.digest).length > 0) return found
      if ((await peekUnlessAway(admin, found.counted))?.some(isUsed)) return found
    }
  }
  const asked = readKey(reference, keyNames)
  const digest = 'digest' in asked && typeof asked.digest === 'string' ? asked.digest : ''
  const name = nameOf(admin, digest)
  const named =
    name === undefined ? undefined : await identityOf(admin, name).catch(() => undefined)
  // The digest's owner is already known.
  return named?.digest === digest ? named : identityOf(admin, reference)
}

/** @throws ApiError if no policy counts this kind of key, or the store knows no digests */
async function identityOf(admin: Admin, reference: KeyReference): Promise<Identity> {
  const live = policiesOf(admin)
  const named = readKey(reference, live.keyNames)
  const counted = await fromStore(() => live.countsOf(named))
  const [first] = counted
  if (!first) {
    const counted = live.countsOf({ digest: '' }).flatMap(({ names }) => names)
    const known = [...new Set(counted)].join(', ')
    throw new ApiError(400, `No policy counts ${kindOf(named)} by itself; keys here: ${known}.`)
  }
  const { store } = first.limiter
  if (first.digest === undefined) {
    const key = 'key' in named ? { key: named.key } : {}
    return { digest: digestOf(first.key, store), kind: kindOf(named), ...key, counted }
  }
  const { digest } = first
  if (!store.keys?.keyFor)
    throw new ApiError(400, 'This store cannot find keys by digest; pass the key itself.')
  const found = await fromStore(() => store.keys?.keyFor?.(digest))
  if (!found) throw new ApiError(404, 'The store has no key with this digest.')
  return { digest, kind: 'digest', counted: counted.map((each) => ({ ...each, ...found })) }
}

/** Explains why nothing was found: code may produce a different string for this key. */
function noteOn(counted: readonly CountedKey[]): { readonly note: string } | undefined {
  const names = [...new Set(counted.flatMap(({ ownFunctions }) => ownFunctions))].join(', ')
  const note = `A function in your code creates the keys of ${names}. Pass the complete text that it returns, or the digest from the denial log or sluice top.`
  return names === '' ? undefined : { note }
}

/** Returns `undefined` while the store is unavailable: a look-up then returns local state. */
async function peekUnlessAway(admin: Admin, counted: readonly CountedKey[]) {
  if (admin.storeHealth()?.isAway) return undefined
  return peek(counted).catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 503) return undefined
    throw error
  })
}

/** Reads the state of an identity under each policy one by one, since no request checks all. */
async function peek(
  counted: readonly CountedKey[],
): Promise<readonly (PeekedOutcome | undefined)[]> {
  return fromStore(() =>
    Promise.all(
      counted.map(async (each) => {
        const look = { ...checkOf(each, 1), limit: each.limitIsKnown ? each.limit : undefined }
        return (await peekAt([look], each.limiter.store)).outcomes[0]
      }),
    ),
  )
}

function checkOf({ policy, key, digest, limit }: CountedKey, cost: number): Check {
  return { policy, key, cost, limit, ...(digest === undefined ? {} : { digest }) }
}

function stateOf(
  admin: Admin,
  { policy, shadow }: CountedKey,
  digest: string,
  outcome: PeekedOutcome | 'unknown' | undefined,
) {
  const label = labelOf(policy)
  const denied = Object.fromEntries(
    topKeysWindows.map((window) => [window, deniedOf(admin, label, digest, window)]),
  )
  const mode = (shadow ?? policy.enforcedShare === 0) ? 'shadow' : 'enforce'
  const sought = { policy: label, windowMs: policy.windowMs }
  const taken = admin.metrics && takenUnder(admin.metrics, sought)?.keys
  const perWindow = taken?.find((each) => each.digest === digest)?.perWindow
  const penalty = isPenalty(policy)
  const withinMs = penalty && policy.windowMs > 0 ? policy.windowMs : undefined
  const shown = { policy: policy.name, isPenalty: penalty, withinMs, mode, denied, perWindow }
  if (outcome === 'unknown') return shown
  if (!outcome || outcome.limit === Number.POSITIVE_INFINITY)
    return { ...shown, allowed: true, limit: 'unlimited' }
  const { allowed, limit, used, remaining, resetMs, retryAfterMs } = outcome
  const bucket = limit !== undefined &&
    algorithmOf(policy).capacityLevel !== undefined && {
      capacity: usageOf({ policy, limit, remaining }).capacity,
      refillMs: policy.windowMs,
    }
  return {
    ...{ ...shown, allowed, limit, used, remaining, resetMs, ...bucket },
    retryAfterMs: Number.isFinite(retryAfterMs) ? retryAfterMs : undefined,
  }
}

function deniedOf(
  { metrics }: Admin,
  policy: string,
  digest: string,
  window: (typeof topKeysWindows)[number],
): number | undefined {
  const top = metrics?.topKeys({ policy, by: 'denied', window, most: 100 })
  const found = top?.keys.find((each) => each.digest === digest)
  return found?.count ?? (top?.floor === 0 ? 0 : undefined)
}

/** Finds denials that the processes counted, also by policies in code, and while Redis is down. */
function denialsOf(admin: Admin, digest: string): readonly { policy: string; denied: number }[] {
  if (!admin.metrics) return []
  const options = { by: 'denied', window: '10m', most: 100 } as const
  return topLists(admin, () => true, options).flatMap(({ policy, keys }) =>
    keys.filter((each) => each.digest === digest).map(({ count }) => ({ policy, denied: count })),
  )
}

function nameOf(admin: Admin, digest: string): string | undefined {
  if (!admin.metrics) return undefined
  const keys = topLists(admin, () => true, { window: '1h', most: 100 }).flatMap(({ keys }) => keys)
  return keys.find((each) => each.digest === digest && each.name !== undefined)?.name
}

function isUsed(outcome: PeekedOutcome | undefined): boolean {
  const { allowed, limit = 0, remaining = limit, used = limit - remaining } = outcome ?? {}
  return allowed === false || used > 0
}

function isPenalty(policy: Policy): boolean {
  return algorithmOf(policy).counts === 'strikes'
}
