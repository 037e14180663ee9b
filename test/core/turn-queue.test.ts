import { endsWithin, sleep, TurnQueue, withDeadline } from '@sluice/core'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

/** Gives a unit each 100 ms, and counts what is asked and returned. */
function everyTenthOfASecond() {
  let freeAt = Date.now()
  const source = {
    asks: 0,
    returned: 0,
    async ask(cost: number) {
      source.asks += 1
      const waitMs = freeAt - Date.now()
      if (waitMs > 0) return { retryMs: waitMs }
      freeAt = Date.now() + 100 * cost
      return { grant: cost }
    },
    async giveBack() {
      source.returned += 1
    },
  }
  return source
}

describe('TurnQueue', () => {
  it('has one request in flight, however many wait', async () => {
    const source = everyTenthOfASecond()
    const queue = new TurnQueue(source)
    for (let i = 0; i < 50; i += 1) void queue.wait()
    await vi.advanceTimersByTimeAsync(0)
    expect(source.asks).toBe(2)
  })

  it('requests nothing for others before a waiter has started', async () => {
    const source = everyTenthOfASecond()
    const queue = new TurnQueue(source)
    let begun = (): void => undefined
    const begin = () =>
      new Promise<void>((resolve) => {
        begun = resolve
      })
    const first = queue.wait({ begin })
    void queue.wait()
    await vi.advanceTimersByTimeAsync(1_000)
    expect(source.asks).toBe(1)
    begun()
    expect(await first).toEqual({ grant: 1 })
    await vi.advanceTimersByTimeAsync(0)
    expect(source.asks).toBe(2)
  })

  it('reports why a waiter has left, and returns unneeded units', async () => {
    let answer: (grant: { grant: number }) => void = () => undefined
    const source = {
      ask: () => new Promise<{ grant: number }>((resolve) => (answer = resolve)),
      giveBack: vi.fn(async () => undefined),
    }
    const queue = new TurnQueue(source)
    const leaving = new AbortController()
    const turns = [
      queue.wait({ maxWaitMs: 50 }),
      queue.wait({ signal: leaving.signal }),
      queue.wait({}),
      queue.wait({ signal: AbortSignal.abort() }),
    ]
    await vi.advanceTimersByTimeAsync(50)
    leaving.abort()
    queue.close()
    answer({ grant: 1 })
    await vi.advanceTimersByTimeAsync(0)
    const reasons = ['timeout', 'aborted', 'closed', 'aborted']
    expect(await Promise.all(turns)).toEqual(reasons.map((left) => ({ left })))
    expect(source.giveBack).toHaveBeenCalledOnce()
    expect(vi.getTimerCount()).toBe(0)
  })

  it('warns of a failed request, and retries after a second', async () => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    const source = everyTenthOfASecond()
    const ask = vi.spyOn(source, 'ask').mockRejectedValueOnce(new Error('no such store'))
    const turn = new TurnQueue(source).wait()
    await vi.advanceTimersByTimeAsync(999)
    expect(ask).toHaveBeenCalledOnce()
    await vi.advanceTimersByTimeAsync(1)
    expect(await turn).toEqual({ grant: 1 })
    expect(String(warn.mock.calls)).toContain('no such store')
  })

  it('rejects a waiter that cannot start, and continues', async () => {
    const queue = new TurnQueue(everyTenthOfASecond())
    const begin = () => Promise.reject(new Error('not noted'))
    const failing = expect(queue.wait({ begin })).rejects.toThrow('not noted')
    const next = queue.wait()
    await vi.advanceTimersByTimeAsync(100)
    await failing
    expect(await next).toEqual({ grant: 1 })
  })
})

describe('waits', () => {
  it('end with their signal, and leave no timer', async () => {
    const controller = new AbortController()
    const sleeping = sleep(1_000, controller.signal)
    controller.abort()
    await sleeping
    await sleep(1_000, controller.signal)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('have a deadline, which no timer outlives', async () => {
    const late = () => new Error('late')
    expect(await withDeadline(Promise.resolve(1), 100, late)).toBe(1)
    const slow = expect(withDeadline(sleep(200), 100, late)).rejects.toThrow('late')
    const inTime = endsWithin(Promise.reject(new Error('failed')), 100)
    const tooLate = endsWithin(sleep(200), 100)
    await vi.advanceTimersByTimeAsync(200)
    await slow
    expect([await inTime, await tooLate]).toEqual([true, false])
    expect(vi.getTimerCount()).toBe(0)
  })
})
