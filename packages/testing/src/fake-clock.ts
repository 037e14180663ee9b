import { type Duration, durationMs, invalid, isWholeNumber, knownFields } from '@sluice/core'

/** Options of `fakeClock`. */
export interface FakeClockOptions {
  /** Time (ms since 1970) at which the clock stands. @default the time of the machine */
  readonly now?: number
}

/** A clock in the hand of a test. Called as a function, it returns its time in ms since 1970. */
export interface FakeClock {
  (): number
  /** Moves the clock forward. */
  advance(by: Duration): void
  /** Sets the clock, forward or back, to a time in ms since 1970. */
  set(now: number): void
  /** Gives `Date.now` its own time back. */
  restore(): void
}

/**
 * Stops `Date.now` until `restore`, so that all limits in memory go by this clock. For other
 * stores, pass it as their option `clock`. Timers and `new Date()` keep the time of the machine.
 * @example
 * const clock = fakeClock()
 * clock.advance('1m')
 */
export function fakeClock(options: FakeClockOptions = {}): FakeClock {
  knownFields(options, 'fakeClock', ['now'])
  const before = Date.now
  let now = timeOf(options.now ?? before())
  let isRestored = false
  const clock: FakeClock = Object.assign(() => (isRestored ? before() : now), {
    advance(by: Duration) {
      now += durationMs(by, 'advance')
    },
    set(to: number) {
      now = timeOf(to)
    },
    restore() {
      isRestored = true
      // Another clock may have been put over this one: it asks this one once it is restored.
      if (Date.now === clock) Date.now = before
    },
  })
  Date.now = clock
  return clock
}

function timeOf(now: unknown): number {
  if (isWholeNumber(now, { min: 0 })) return now
  throw invalid({ option: 'now' }, now, 'whole milliseconds since 1970')
}
