import { invalid, orDefault, wholeNumber } from '@sluice/core'

type Describe = (name: string, body: () => void) => unknown
type It = (name: string, body: () => Promise<void>) => unknown

/** The functions of a test runner. */
export interface TestRunner {
  /** `describe` of vitest, jest or node:test. @default the global one */
  readonly describe?: Describe | undefined
  /** `it` of vitest, jest or node:test. @default the global one */
  readonly it?: It | undefined
}

/** The test runner of a kit whose tests wait for later events in real time. */
export interface WaitingRunner extends TestRunner {
  /**
   * Maximum wait (ms), 1 to 600,000. Choose less than the test timeout, so that a failure names the
   * missing event.
   * @default 4_000
   */
  readonly waitMs?: number | undefined
}

export function waitMsOf({ waitMs }: WaitingRunner): number {
  return wholeNumber(orDefault(waitMs, 4_000), { option: 'waitMs' }, { min: 1, max: 600_000 })
}

/** @throws SluiceError if a function is missing and there is no global one */
export function testRunner(
  options: TestRunner,
  where: string,
): { readonly describe: Describe; readonly it: It } {
  return {
    describe: functionOf(options, 'describe', where),
    it: functionOf(options, 'it', where),
  }
}

function functionOf(options: object, name: string, where: string): Describe & It {
  const found: unknown = Reflect.get(options, name) ?? Reflect.get(globalThis, name)
  if (isFunction(found)) return found
  const legal = `a function of your test runner: describe and it of 'vitest', '@jest/globals' or 'node:test'`
  throw invalid({ option: `${where}: ${name}` }, found, legal)
}

function isFunction(value: unknown): value is Describe & It {
  return typeof value === 'function'
}
