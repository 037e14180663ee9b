import type { Check } from '@sluice/core'
import type { AnyCheck } from '../../support/store-through.ts'

/** What an oracle says of a check: the fields of an outcome that every store must agree on. */
export interface Expected {
  allowed: boolean
  limit: number
  remaining: number
  /** −1 for none. */
  resetMs: number
  retryAfterMs: number
  delayMs: number
}

export interface GivenBack {
  /** Whether anything was given back. */
  readonly given: boolean
  /** Whether nothing is left, so that another life begins. */
  readonly isGone: boolean
}

/** What one key of one policy has taken between being empty and being empty again, in the most obvious form. */
export interface Life {
  copy(): Life
  /** Times that lie after now count as now. @returns the instants at which something ends anew, when that changed anything */
  settle(check: Check, now: number): number[]
  /** Whether all that was taken has gone by itself. */
  isOver(check: Check, now: number): boolean
  /** @returns what a receipt has to name, and the instants at which what was taken stops to count, by any reading of its time */
  take(check: Check, now: number): { at: number; ends: number[] }
  /** Whether taking the check would lose units, so that nothing that was taken until then is given back any more. */
  overflows?(check: Check, now: number): boolean
  /** Only where what was taken can be given back. */
  giveBack?(check: AnyCheck, at: number, now: number): GivenBack
  /** Units that count. */
  used(check: Check, now: number): bigint
  /** @returns whether the lease still runs. Only where leases are taken. */
  renew?(check: Check, at: number, now: number): { held: boolean; ends: number[] }
  /** Denies all for as many ms as the check costs. @returns the instants at which that ends, and whether there was a block. Only where keys can be blocked. */
  block?(check: Check, now: number): { found: boolean; ends: number[] }
  expected(check: Check, now: number): Expected
}

/** The first wait from which on something holds: found by halving, since units only ever leave. */
export function firstWait(longest: number, holds: (waitMs: number) => boolean): number {
  let low = 0
  let high = longest
  while (low < high) {
    const middle = low + Math.floor((high - low) / 2)
    if (holds(middle)) high = middle
    else low = middle + 1
  }
  return low
}

export function ceilDivide(dividend: bigint, divisor: bigint): number {
  return Number((dividend + divisor - 1n) / divisor)
}
