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
  /** Initial time (ms since 1970). @default the current `Date.now()` */
  readonly now?: number | undefined
}

/** A clock controlled by a test. Called as a function, it returns its time in ms since 1970. */
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
  /** Restores `Date.now`. */
  restore(): void
}

/** Clocks created by either build of the package: they may be stacked. */
const clocks = processWide('@sluice/testing/clocks/1', () => new WeakSet<object>())

const isNative = /\[native code\]\s*\}$/

/**
 * Stops `Date.now` until `restore`, so that all limits in memory use this clock. For other stores,
 * pass it as their option `clock`. Timers and `new Date()` keep the real time.
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
        'move time only with them, or exclude Date from them ' +
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
      // Another clock may be stacked on this one: it uses this one once it is restored.
      if (Date.now === clock) Date.now = before
    },
  })
  clocks.add(clock)
  Date.now = clock
  return clock

  function move(method: string, to: number): void {
    const from = now
    now = to
    // Not by identity: a mock may return the time of this clock.
    if (!isRestored && Date.now() === to) return
    now = from
    throw new Error(
      isRestored
        ? `fakeClock: ${method} came after restore(), and would have no effect on limits; create a new clock`
        : `fakeClock: ${method} would have no effect on limits, because another clock has replaced Date.now since; ` +
            'restore the newer clock first, or exclude Date from your fake timers',
    )
  }
}

function timeOf(now: unknown): number {
  if (isWholeNumber(now, { min: 0 })) return now
  throw invalid({ option: 'now' }, now, 'whole milliseconds since 1970')
}
