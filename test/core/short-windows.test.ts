import { createLimiter, type Duration, memoryStore } from '@sluice/core'
import { createOutbound } from '@sluice/outbound'
import { createQueue, createWorker, memoryBroker } from '@sluice/queue'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { guardOf } from '../http/exchange.ts'

const warn = vi.spyOn(console, 'warn')

beforeEach(() => void warn.mockClear().mockReturnValue())
afterEach(() => void vi.useRealTimers())

describe('a bare number below 1,000, which most limiters take for seconds', () => {
  it.each<[option: string, given: number, use: (given: number) => unknown]>([
    ['window', 60, (window) => createLimiter({ limit: 5, window })],
    [
      'policies[1].window',
      61,
      (window) =>
        createLimiter({
          policies: [
            { name: 'a', limit: 5, window: '1m' },
            { limit: 5, window },
          ],
        }),
    ],
    ['lease', 30, (lease) => createLimiter({ limit: 5, algorithm: 'concurrency', lease })],
    ['penalty.within', 62, (within) => penalised({ within })],
    ['penalty.for', 63, (given) => penalised({ for: given })],
    ['penalty.max', 999, (max) => penalised({ for: '1ms', max })],
    ['for', 64, (duration) => penalised({}).block('ada', duration)],
    ['profiles.heavy.window', 65, (window) => guardOf({ ...good, profiles: profile(window) })],
    ['maxAge', 66, (maxAge) => createQueue({ broker: memoryBroker(), maxAge })],
    ['retention', 67, (retention) => createQueue({ broker: memoryBroker(), retention })],
    ['limits[0].window', 1, (window) => outbound(window)],
  ])('as %s causes one warning: %i', async (option, given, use) => {
    await use(given)
    await use(given)
    expect(warn.mock.calls).toEqual([
      [
        `sluice: ${option}: ${given} means ${given} milliseconds; write '${given}s' for seconds, or '${given}ms' if you mean milliseconds`,
      ],
    ])
  })

  it('causes no warning from 1,000 up, nor for a string', () => {
    createLimiter({ limit: 5, window: 1_000 })
    createLimiter({ limit: 5, window: '50ms' })
    createLimiter({ limit: 5, algorithm: 'concurrency', lease: '50ms' })
    penalised({ within: '50ms', for: '10ms' })
    expect(warn).not.toHaveBeenCalled()
  })

  it('causes no warning for durations that Sluice derives itself', async () => {
    guardOf({ limit: 5, window: '50ms', idempotencyKey: true })
    await outbound('50ms').close()
    await worker('50ms').close()
    await penalised({}).block('ada', '50ms')
    expect(warn).not.toHaveBeenCalled()
  })
})

const good = { limit: 5, window: '1m' } as const

function penalised(given: { within?: Duration; for?: Duration; max?: Duration }) {
  return createLimiter({ ...good, penalty: { after: 3, within: '1m', for: '5m', ...given } })
}

function profile(window: Duration) {
  return { heavy: { limit: 5, window } }
}

function outbound(window: Duration) {
  return createOutbound({ name: 'crm', limits: [{ limit: 5, window }], store: memoryStore() })
}

function worker(window: Duration) {
  return createWorker({ broker: memoryBroker(), handler: () => null, limit: 5, window })
}
