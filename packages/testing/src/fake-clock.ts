import {
  type Duration,
  durationMs,
  invalid,
  isWholeNumber,
  knownFields,
  processWide,
} from '@sluice/core'

/** Options of `fakeClock`. */
export interface FakeClockOptions {
  /** Time (ms since 1970) at which the clock stands. @default the time that `Date.now` tells */
  readonly now?: number | undefined
}

/** A clock in the hand of a test. Called as a function, it returns its time in ms since 1970. */
export interface FakeClock {
  (): number
  /**
   * Moves the clock forward.
   * @throws Error when `Date.now` does not go by this clock
   */
  advance(by: Duration): void
  /**
   * Sets the clock, forward or back, to a time in ms since 1970.
   * @throws Error when `Date.now` does not go by this clock
   */
  set(now: number): void
  /** Gives `Date.now` its own time back. */
  restore(): void
}

/** Clocks of this function, by either form of the package: they may lie over each other. */
const clocks = processWide('@sluice/testing/clocks/1', () => new WeakSet<object>())

const isNative = /\[native code\]\s*\}$/

/**
 * Stops `Date.now` until `restore`, so that all limits in memory go by this clock. For other
 * stores, pass it as their option `clock`. Timers and `new Date()` keep the time of the machine.
 * @example
 * const clock = fakeClock()
 * clock.advance('1m')
 * @throws Error when fake timers or a mock have replaced `Date.now` already
 */
export function fakeClock(options: FakeClockOptions = {}): FakeClock {
  knownFields(options, 'fakeClock', ['now'])
  const before = Date.now
  if (!clocks.has(before) && !isNative.test(Function.prototype.toString.call(before))) {
    throw new Error(
      'fakeClock: fake timers or a mock have replaced Date.now, and two clocks would contradict each other; ' +
        'move the time with them alone, or leave Date out of them ' +
        "(vitest: toFake: ['setTimeout'], jest: doNotFake: ['Date'])",
    )
  }
  let now = timeOf(options.now ?? before())
  let isRestored = false
  const clock: FakeClock = Object.assign(() => (isRestored ? before() : now), {
    advance(by: Duration) {
      move('advance', now + durationMs(by, 'advance'))
    },
    set(to: number) {
      move('set', timeOf(to))
    },
    restore() {
      isRestored = true
      // Another clock may have been put over this one: it asks this one once it is restored.
      if (Date.now === clock) Date.now = before
    },
  })
  clocks.add(clock)
  Date.now = clock
  return clock

  function move(method: string, to: number): void {
    const from = now
    now = to
    // Not by identity: a mock may well tell the time of this clock.
    if (!isRestored && Date.now() === to) return
    now = from
    throw new Error(
      isRestored
        ? `fakeClock: ${method} came after restore(), and would move no limit; make a new clock`
        : `fakeClock: ${method} would move no limit, because another clock has replaced Date.now since; ` +
            'restore the newer clock first, or leave Date out of your fake timers',
    )
  }
}

function timeOf(now: unknown): number {
  if (isWholeNumber(now, { min: 0 })) return now
  throw invalid({ option: 'now' }, now, 'whole milliseconds since 1970')
}
