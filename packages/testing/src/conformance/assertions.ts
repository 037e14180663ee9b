import { deepStrictEqual } from 'node:assert'
import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'

// Our own assertions, since the kits run under any test runner. Messages name the broken promise.

/** Checks that two values are equal, deeply. */
export function same(actual: unknown, expected: unknown, promise: string): void {
  if (isEqual(actual, expected)) return
  throw new Error(`${promise}: expected ${shown(expected)}, but got ${shown(actual)}`)
}

/** Checks the given fields of an object; lists are compared item by item. */
export function like(actual: unknown, expected: object, promise: string): void {
  const wrong = differences(actual, expected, '')
  if (wrong.length > 0) throw new Error(`${promise}: ${wrong.join('; ')}`)
}

/** Captured here, since a test's clock may replace them. */
const monotonicNs = process.hrtime.bigint

/** Waits, in real time, until a condition holds. */
export async function until(
  promise: string,
  holds: () => boolean | Promise<boolean>,
  timeoutMs: number,
): Promise<void> {
  const deadline = monotonicNs() + BigInt(timeoutMs) * 1_000_000n
  while (!(await holds())) {
    if (monotonicNs() > deadline) throw new Error(`not within ${timeoutMs} ms: ${promise}`)
    await sleep(10)
  }
}

function differences(actual: unknown, expected: unknown, path: string): string[] {
  if (!isObject(expected) || !isObject(actual)) {
    return isEqual(actual, expected)
      ? []
      : [`${path === '' ? 'it' : path} should be ${shown(expected)}, but is ${shown(actual)}`]
  }
  const fields = Object.entries(expected)
  const all = Array.isArray(expected) ? [['length', expected.length] as const, ...fields] : fields
  return all.flatMap(([name, value]) =>
    differences(Reflect.get(actual, name), value, path === '' ? name : `${path}.${name}`),
  )
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

function isEqual(actual: unknown, expected: unknown): boolean {
  try {
    deepStrictEqual(actual, expected)
    return true
  } catch {
    // It throws only for values that differ.
    return false
  }
}

function shown(value: unknown): string {
  return inspect(value, { breakLength: Number.POSITIVE_INFINITY, depth: 4, maxStringLength: 300 })
}
