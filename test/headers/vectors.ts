import { readFileSync } from 'node:fs'
import type { Dialect, PolicyState } from '@sluice/headers'

type VectorPolicy = Partial<Omit<PolicyState, 'limit' | 'remaining' | 'resetMs' | 'pk'>> & {
  readonly limit: JsonNumber
  readonly remaining?: JsonNumber
  readonly resetMs?: number | null
  readonly pk?: readonly number[]
}

/** JSON has no word for these three. */
type JsonNumber = number | '-0' | 'NaN' | 'Infinity'

type VectorKey = 'draft-11' | 'draft-7' | 'draft-6' | 'legacy-epoch' | 'legacy-delta'

type Vector = Readonly<Record<VectorKey, readonly string[]>> & {
  readonly id: string
  readonly state: string
  readonly status: number
  readonly policies: readonly VectorPolicy[]
}

/** The time is in milliseconds since 1970. */
export const { vectors, now: nowMs }: { vectors: readonly Vector[]; now: number } = JSON.parse(
  readFileSync(new URL('./http-vectors.json', import.meta.url), 'utf8'),
)

/** The dialects under each key of the file. */
export const dialectsOf: Readonly<Record<VectorKey, readonly Dialect[]>> = {
  'draft-11': ['draft-11', 'draft-10', 'draft-9', 'draft-8'],
  'draft-7': ['draft-7'],
  'draft-6': ['draft-6'],
  'legacy-epoch': ['legacy'],
  'legacy-delta': ['legacy-delta'],
}

export const vectorKeys = Object.keys(dialectsOf) as readonly VectorKey[]

export function statesOf(vector: Vector): PolicyState[] {
  return vector.policies.map(stateOf)
}

export function vectorOf(id: string): Vector {
  const vector = vectors.find((candidate) => candidate.id === id)
  if (vector === undefined) throw new Error(`no vector ${id}`)
  return vector
}

function stateOf({ pk, ...policy }: VectorPolicy): PolicyState {
  const limit = Number(policy.limit)
  const resetMs = policy.resetMs ?? undefined
  return {
    ...policy,
    name: policy.name ?? 'default',
    limit,
    remaining: policy.remaining === undefined ? undefined : Number(policy.remaining),
    resetMs,
    retryAfterMs: policy.denied === true ? retryAfterMs(policy, limit) : undefined,
    pk: pk === undefined ? undefined : Uint8Array.from(pk),
  }
}

function retryAfterMs(policy: VectorPolicy, limit: number): number | undefined {
  if (limit === 0 || (policy.cost ?? 1) > limit) return Number.POSITIVE_INFINITY
  return policy.retryAfterMs ?? policy.resetMs ?? undefined
}
