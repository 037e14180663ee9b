import { EventEmitter } from 'node:events'
import type { Passage } from '@sluice/http'
import { settleAfter } from '@sluice/http/adapter'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { until } from '../support/until.ts'
import { exchange, guardOf, now } from './exchange.ts'

const queue = { algorithm: 'leaky-bucket', limit: 1, window: '1s', queue: 1_000_000 } as const

beforeEach(() => void vi.useFakeTimers({ now: 1_000_000 }))
afterEach(() => void vi.useRealTimers())

/** Whether the request went on; `undefined` while it waits. */
function fate({ verdict }: Passage): { goesOn: boolean | undefined } {
  const known: { goesOn: boolean | undefined } = { goesOn: undefined }
  if (verdict.action === 'pass') known.goesOn = true
  if (verdict.action === 'delay') verdict.turn.then((goesOn) => Object.assign(known, { goesOn }))
  return known
}

describe('a delayed passage', () => {
  it('continues at the millisecond of its turn, and its later end changes nothing', async () => {
    const guard = guardOf(queue)
    expect(now(guard.check(exchange())).verdict.action).toBe('pass')
    const passage = now(guard.check(exchange()))
    const request = fate(passage)

    expect([passage.verdict.action, passage.decision?.delayMs]).toEqual(['delay', 1000])
    await vi.advanceTimersByTimeAsync(999)
    expect(request.goesOn).toBeUndefined()
    await vi.advanceTimersByTimeAsync(1)
    expect([request.goesOn, guard.waiting]).toEqual([true, 0])
    passage.hold?.finish(200)
    expect([request.goesOn, guard.waiting]).toEqual([true, 0])
  })

  it.each(['finish', 'abort'] as const)(
    'does not continue after %s, and keeps its slot taken',
    async (how) => {
      const guard = guardOf(queue)
      guard.check(exchange())
      const { hold, ...passage } = now(guard.check(exchange()))
      const request = fate({ hold, ...passage })

      expect(guard.waiting).toBe(1)
      hold?.[how](200)
      hold?.abort()
      expect([guard.waiting, vi.getTimerCount()]).toEqual([0, 0])
      await vi.runAllTimersAsync()
      expect(request.goesOn).toBe(false)
      expect(now(guard.check(exchange())).decision?.delayMs).toBe(2000)
    },
  )

  it('shows the client its position at decision time', () => {
    const guard = guardOf({ ...queue, window: 30, headers: ['draft-11'] })
    guard.check(exchange())

    expect(Object.fromEntries(now(guard.check(exchange())).verdict.fields)).toEqual({
      'RateLimit-Policy': '"default";q=1;w=1',
      RateLimit: '"default";r=0;t=1',
    })
  })

  it('100,000 of them all continue or are aborted, without leaks', async () => {
    // Real timers: faked ones look at each other, 100,000 times 100,000.
    vi.useRealTimers()
    vi.useFakeTimers({ toFake: ['Date'], now: 1_000_000 })
    const timers = () =>
      process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
    const before = timers()
    const guard = guardOf({ ...queue, limit: 500_000, maxWaiting: 100_000 })
    const passages = Array.from({ length: 100_000 }, () => now(guard.check(exchange())))
    const requests = passages.map(fate)
    expect(guard.waiting).toBeGreaterThan(99_990)

    for (let i = 1; i < passages.length; i += 2) passages[i]?.hold?.abort()
    expect(guard.waiting).toBeGreaterThan(49_990)
    await until('none waits', () => guard.waiting === 0)

    // Files that share this process may have timers of their own for a while.
    await until('its timers are gone', () => timers() <= before)
    expect(requests.every(({ goesOn }, index) => goesOn === (index % 2 === 0))).toBe(true)
  })
})

describe('the waiting room', () => {
  it('refuses one request too many, uncharged, with a wait until its turn', () => {
    const guard = guardOf({ ...queue, window: 1500, maxWaiting: 1 })
    guard.check(exchange())
    guard.check(exchange())
    const refused = now(guard.check(exchange()))

    const text = '{"type":"about:blank","title":"Service Unavailable","status":503}'
    expect(refused.verdict).toMatchObject({
      ...{ action: 'reject', status: 503 },
      body: { contentType: 'application/problem+json', text },
    })
    const fields = Object.fromEntries(refused.verdict.fields)
    expect(fields).toEqual({ 'Retry-After': '3', 'Cache-Control': 'no-store' })
    expect(refused.decision).toMatchObject({ allowed: false, outcomes: [], retryAfterMs: 3000 })
    expect(refused.hold).toBeUndefined()
    expect(guard.waiting).toBe(1)
    vi.setSystemTime(Date.now() + 1)
    expect(now(guard.check(exchange())).decision?.retryAfterMs).toBe(2999)
  })

  it('without seats refuses every request that would wait, and charges no policy', async () => {
    const total = { name: 'total', limit: 10, window: '1m' } as const
    const policies = [{ ...queue, name: 'queue' }, total]
    const guard = guardOf({ policies, maxWaiting: 0, key: () => 'ada' })

    expect(now(guard.check(exchange())).verdict.action).toBe('pass')
    expect(now(guard.check(exchange())).verdict.action).toBe('reject')
    expect((await guard.limiter.peek('ada')).outcomes[1]?.remaining).toBe(9)
  })
})

describe('settleAfter', () => {
  const responding = () =>
    Object.assign(new EventEmitter(), { statusCode: 204, writableEnded: false, closed: false })
  const setUp = () => ({
    response: responding(),
    socket: Object.assign(new EventEmitter(), { destroyed: false }),
    hold: { finish: vi.fn(), abort: vi.fn() },
  })

  it('reports once how a response ended, and stops listening', () => {
    const { response, socket, hold } = setUp()
    settleAfter(response, socket, hold)
    response.writableEnded = true
    for (const event of ['finish', 'close']) response.emit(event)
    socket.emit('close')

    expect(hold.finish).toHaveBeenCalledExactlyOnceWith(204)
    expect(hold.abort).not.toHaveBeenCalled()
    expect(response.eventNames()).toEqual([])
  })

  it('listens once to a connection, however many requests it carries at once', () => {
    const { socket } = setUp()
    const holds = Array.from({ length: 100 }, () => ({ finish: vi.fn(), abort: vi.fn() }))
    for (const hold of holds) settleAfter(responding(), socket, hold)

    expect(socket.listenerCount('close')).toBe(1)
    socket.emit('close')
    expect(holds.every(({ abort }) => abort.mock.calls.length === 1)).toBe(true)
  })

  it('works with a response without a connection', () => {
    const { response, hold } = setUp()
    settleAfter(response, undefined, hold)
    settleAfter(response, { destroyed: false }, hold)
    response.emit('close')
    expect(hold.abort).toHaveBeenCalledTimes(2)
  })
})
