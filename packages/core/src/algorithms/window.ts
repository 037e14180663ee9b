import type { Algorithm, CountingCheck, KeyState, OwnOptions } from './algorithm.ts'

/** Traits that most windows share. */
export const plainWindow: Pick<Algorithm, 'keyShape' | 'lifeMs' | 'capacity'> = {
  keyShape: ({ windowMs }) => String(windowMs),
  lifeMs: ({ windowMs }) => windowMs,
  capacity: ({ limit }) => limit,
}

type Flat<State> = { readonly [field in keyof State]: number }

/**
 * The same for states whose fields are all integers. They are stored in the order of a new state's
 * fields, so changing that order changes the format.
 */
export function flatWindow<State extends KeyState & Flat<State>>(
  create: () => State,
): typeof plainWindow & Pick<Algorithm<State>, 'create' | 'codec'> {
  const fields = Object.keys(create())
  return {
    ...plainWindow,
    create,
    codec: {
      save: (state) => fields.map((field) => Reflect.get(state, field)),
      load(numbers) {
        if (numbers.length !== fields.length) return undefined
        const saved = fields.map((field, index) => [field, numbers[index]])
        return Object.assign(create(), Object.fromEntries(saved))
      },
    },
  }
}

/** For an algorithm without specific options. */
export const noOptions: OwnOptions<object, object> = { fields: {}, read: () => ({}) }

/**
 * The window in which clients that pace themselves may use the remaining units: `max(time to the
 * next unit, ⌊remaining⌋ · windowMs / limit)`, rounded up. It is the whole window if nothing
 * counts. It satisfies both definitions of `t` in the drafts (time to more quota in -10, effective
 * window in -11).
 * @param msToNextUnit ms until a unit comes back and the count is below the capacity
 */
export function effectiveWindowMs(
  { policy, limit }: CountingCheck<object>,
  remaining: number,
  msToNextUnit: number,
): number {
  return Math.max(msToNextUnit, Math.ceil((remaining * policy.windowMs) / limit))
}

/** Returns the units left: an integer from 0 to the limit, even if a bucket holds more. */
export function remainingUnits(limit: number, capacity: number, used: number): number {
  return Math.min(limit, Math.max(0, capacity - used))
}
