import type { RegionUse } from '../model/region.ts'
import { isOptions } from '../options/options.ts'

/** A reset or a block that the other regions have to repeat. */
export interface Notice {
  readonly id: string
  readonly op: 'reset' | 'block'
  readonly policy: string
  /** The key, or its digest if the stores find keys by their digest. */
  readonly key?: string | undefined
  readonly digest?: string | undefined
  /** The ms of a block; 1 for a reset. */
  readonly cost: number
}

/** A notice, with the time (ms) since it was first posted. */
export type AgedNotice = Notice & { readonly ageMs: number }

/** The text of one process for the processes of all regions. */
export interface Post {
  readonly region: string
  readonly shares: string
  readonly member: string
  /** Number that grows with each post. */
  readonly sequence: number
  readonly usage: RegionUse
  readonly notices: readonly AgedNotice[]
}

/** Reads a post; `undefined` for a text that is none, such as one of a later version. */
export function decodePost(text: string): Post | undefined {
  const { region, shares, member, sequence, usage: use, notices } = fieldsOf(parsed(text))
  if (!isText(region) || !isText(shares) || !isText(member) || !isAmount(sequence)) return undefined
  if (!Array.isArray(notices)) return undefined
  const usage = fieldsOf(use)
  const amount = (field: keyof RegionUse) => (isAmount(usage[field]) ? usage[field] : 0)
  return {
    ...{ region, shares, member, sequence },
    usage: {
      share: amount('share'),
      fromShare: amount('fromShare'),
      borrowed: amount('borrowed'),
      held: amount('held'),
    },
    notices: notices.flatMap((notice: unknown) => decodeNotice(fieldsOf(notice)) ?? []),
  }
}

function decodeNotice(notice: Fields): AgedNotice | undefined {
  const { id, op, policy, key, digest, cost, ageMs } = notice
  if (!isText(id) || !isText(policy) || !isAmount(cost) || !isAmount(ageMs)) return undefined
  if (op !== 'reset' && op !== 'block') return undefined
  const named = { id, op, policy, cost, ageMs } as const
  if (isText(digest)) return { ...named, digest }
  return isText(key) ? { ...named, key } : undefined
}

type Fields = Readonly<Record<string, unknown>>

function fieldsOf(value: unknown): Fields {
  return isOptions(value) ? { ...value } : {}
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // A text that is no JSON is no post.
    return undefined
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

function isAmount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0
}
