import { fakeTime as fake } from '../support/fake-time.ts'

/** Fakes the clocks and timers of an outbound. */
export function fakeTime(): void {
  const intervals = ['setInterval', 'clearInterval'] as const
  fake(['Date', 'setTimeout', 'clearTimeout', ...intervals, 'performance'])
}

/** Waits by the faked clock. */
export function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
