import { afterEach, beforeEach, vi } from 'vitest'

type FakeTimerOptions = NonNullable<Parameters<typeof vi.useFakeTimers>[0]>

/** Fakes clocks and timers, all unless said otherwise, for each test that is described around, or of a file, and ends all fakes after it. */
export function fakeTime(
  toFake: FakeTimerOptions['toFake'],
  { now, random }: { readonly now?: number; readonly random?: number } = {},
): void {
  beforeEach(() => {
    vi.useFakeTimers({ ...(toFake && { toFake }), ...(now !== undefined && { now }) })
    if (random !== undefined) vi.spyOn(Math, 'random').mockReturnValue(random)
  })
  afterEach(() => {
    vi.useRealTimers()
    vi.unstubAllGlobals()
    vi.restoreAllMocks()
  })
}
