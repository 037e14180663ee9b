import {
  memoryStore,
  type PolicyOptions,
  type QuotaUnit,
  type Store,
  unlimited,
} from '@sluice/core'
import type { PolicyState } from '@sluice/headers'
import type { GuardFields } from '@sluice/http'
import { parseList } from 'structured-headers'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { nowMs, statesOf, vectors } from '../headers/vectors.ts'
import { exchange, guardOf, now } from './exchange.ts'

const units: readonly unknown[] = [undefined, 'requests', 'content-bytes', 'concurrent-requests']

/** The states of the contract that a limiter can reach; the others are for `formatHeaders` alone. */
const reachable = vectors.filter((vector) =>
  statesOf(vector).every(
    ({ limit, windowMs, remaining = 0, pk, vendor, unit }) =>
      (limit === Number.POSITIVE_INFINITY || isCounted({ limit, windowMs, unit })) &&
      Number.isInteger(remaining) &&
      [pk, vendor].every((value) => value === undefined) &&
      units.includes(unit),
  ),
)

/** A store that answers what it is told to: a list of outcomes for each request. */
function scriptedStore(states: readonly PolicyState[]): Store {
  return {
    ...memoryStore(),
    apply: (_op, checks) =>
      checks.map(({ policy, limit }, index) => {
        const state = states[index]
        if (!state) throw new Error(`no outcome for check ${index}`)
        return { ...outcomeOf(state), policy, limit, delayMs: 0, receipt: undefined }
      }),
  }
}

/** The fields that a guard sends for a request, under their names in lower case. */
function fieldsOf(options: GuardFields<object>) {
  const { verdict } = now(guardOf(options).check(exchange()))
  const fields = verdict.fields.filter(([name]) => name !== 'Cache-Control')
  return {
    status: verdict.action === 'reject' ? verdict.status : 200,
    fields: Object.fromEntries(fields.map(([name, value = '']) => [name.toLowerCase(), value])),
  }
}

// Some of the names are legal, and unusual.
beforeEach(() => void vi.spyOn(console, 'warn').mockReturnValue())
beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now: nowMs }))
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

describe('a guard sends the lines of the contract, which an independent parser of RFC 9651 reads', () => {
  it('for most of the vectors', () => {
    expect(reachable.length).toBeGreaterThan(20)
  })

  it.each(reachable)('$id: $state', (vector) => {
    const states = statesOf(vector)
    const { status, fields } = fieldsOf({
      policies: states.map(policyOf),
      cost: states[0]?.cost ?? 1,
      store: scriptedStore(states.filter(({ limit }) => limit !== Number.POSITIVE_INFINITY)),
    })

    expect(status).toBe(vector.status === 429 ? 429 : 200)
    const lines = [...vector['draft-11'], ...vector['legacy-epoch']].map((line) => {
      const at = line.indexOf(': ')
      return [line.slice(0, at).toLowerCase(), line.slice(at + 2)] as const
    })
    expect(fields).toEqual(Object.fromEntries(lines))
    for (const name of ['ratelimit', 'ratelimit-policy']) {
      const text = fields[name]
      if (text !== undefined) expect(parseList(text).length).toBeGreaterThan(0)
    }
  })
})

function isCounted({ limit, windowMs, unit }: Pick<PolicyState, 'limit' | 'windowMs' | 'unit'>) {
  const isInFlight = windowMs === undefined && unit === 'concurrent-requests'
  const isExact = isInFlight || limit * (windowMs ?? Number.NaN) < 2 ** 53
  return Number.isInteger(limit) && limit >= 0 && isExact
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
  return { allowed: !denied, remaining, resetMs, retryAfterMs: denied ? retryAfterMs : 0 }
}
