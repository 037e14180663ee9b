import type { PolicyOptions, QuotaUnit } from '@sluice/core'
import { unlimited } from '@sluice/core'
import type { PolicyState } from '@sluice/headers'
import { parseDictionary, parseList } from 'structured-headers'
import { expect, it, vi } from 'vitest'
import { statesOf, vectors } from '../../headers/vectors.ts'
import type { Behaviour } from '../adapter-conformance.ts'
import { limitFields } from '../ask.ts'
import { scriptedStore } from '../stores.ts'

const units: readonly unknown[] = [undefined, 'requests', 'content-bytes', 'concurrent-requests']

/** The states of the contract that a limiter can reach; the others are for `formatHeaders` alone. */
const reachable = vectors.filter((vector) =>
  statesOf(vector).every(
    ({ limit, windowMs, remaining = 0, pk, vendor, unit }) =>
      (Number.isInteger(limit) || limit === Number.POSITIVE_INFINITY) &&
      limit >= 0 &&
      (limit === Number.POSITIVE_INFINITY ||
        isInFlight({ windowMs, unit }) ||
        limit * (windowMs ?? Number.NaN) < 2 ** 53) &&
      Number.isInteger(remaining) &&
      pk === undefined &&
      vendor === undefined &&
      units.includes(unit),
  ),
)

/** The contract's vectors over real requests, and all that is sent read by an independent parser of RFC 9651. */
export const contractVectors: Behaviour = ({ limited }) => {
  it('most of the vectors can be reached', () => {
    expect(reachable.length).toBeGreaterThan(20)
  })

  it.each(reachable)('$id: $state', async (vector) => {
    // Some of the names are legal, and unusual.
    vi.spyOn(console, 'warn').mockReturnValue()
    const states = statesOf(vector)
    const cost = states[0]?.cost ?? 1
    const app = await limited({
      policies: states.map(policyOf),
      cost,
      store: scriptedStore(
        states.filter(({ limit }) => limit !== Number.POSITIVE_INFINITY).map(outcomeOf),
      ),
    })

    const answer = await app.ask()

    expect(answer.status).toBe(vector.status === 429 ? 429 : 200)
    const lines = [...vector['draft-11'], ...vector['legacy-epoch']].map((line) => {
      const at = line.indexOf(': ')
      return [line.slice(0, at).toLowerCase(), line.slice(at + 2)] as const
    })
    const fields = limitFields(answer)
    expect(fields).toEqual(Object.fromEntries(lines))
    for (const name of ['ratelimit', 'ratelimit-policy']) {
      const text = fields[name]
      if (text !== undefined) expect(parseList(text).length).toBeGreaterThan(0)
    }
  })

  it('draft-7 is a dictionary, and its policies are a list of integers', async () => {
    const app = await limited({ limit: 9, window: '1m', headers: ['draft-7'] })
    const answer = await app.ask()

    const state = parseDictionary(answer.field('ratelimit') ?? '')
    expect([...state].map(([key, [value]]) => [key, value])).toEqual([
      ['limit', 9],
      ['remaining', 8],
      ['reset', 60],
    ])
    expect(parseList(answer.field('ratelimit-policy') ?? '')).toEqual([[9, new Map([['w', 60]])]])
  })
}

function isInFlight({ windowMs, unit }: Pick<PolicyState, 'windowMs' | 'unit'>): boolean {
  return windowMs === undefined && unit === 'concurrent-requests'
}

function policyOf({ name, limit, windowMs = 1, hidden, unit }: PolicyState): PolicyOptions {
  return {
    name,
    limit: limit === Number.POSITIVE_INFINITY ? unlimited : limit,
    ...(unit === 'concurrent-requests' ? { algorithm: 'concurrency' } : { window: windowMs }),
    ...(hidden === undefined ? {} : { hidden }),
    ...(unit === undefined ? {} : { unit: unit as QuotaUnit }),
  }
}

function outcomeOf({ denied = false, remaining, resetMs, retryAfterMs = 0 }: PolicyState) {
  return {
    allowed: !denied,
    remaining,
    resetMs,
    retryAfterMs: denied ? retryAfterMs : 0,
    delayMs: 0,
    receipt: undefined,
  }
}
