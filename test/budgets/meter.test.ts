import { Readable } from 'node:stream'
import { createLimiter, type Reservation } from '@sluice/core'
import { type MeterOptions, meter } from '@sluice/express'
import type express from 'express'
import fc from 'fast-check'
import request from 'supertest'
import { describe, expect, it, vi } from 'vitest'
import { pageModules, tryModules } from '../examples/page-modules.ts'
import { until } from '../support/until.ts'

type Source = AsyncIterable<string> | Iterable<string>

interface Reading {
  next(): Promise<{ done?: boolean | undefined; value?: string | undefined }>
  leave(): unknown
}

const costOf = (chunk: string): number => chunk.length

/** Meters a source as a stream of each kind, and reads it. */
const kinds: Readonly<Record<string, (source: Source, options: MeterOptions) => Reading>> = {
  web: (source, options) => {
    const reader = meter(ReadableStream.from(source), costOf, options).getReader()
    return { next: () => reader.read(), leave: () => reader.cancel() }
  },
  node: (source, options) => {
    const stream = meter(Readable.from(source), costOf, options)
    const chunks: AsyncIterator<string> = stream[Symbol.asyncIterator]()
    return { next: () => chunks.next(), leave: () => stream.destroy() }
  },
}

async function reserve(units: number, window: '1m' | '2s' = '1m'): Promise<Reservation> {
  const limiter = createLimiter({ name: 'bytes', limit: units, window, reserve: true })
  return limiter.reserve('ada', { units, step: 0 })
}

async function readAll(stream: Reading): Promise<{ chunks: string[]; error: unknown }> {
  const chunks: string[] = []
  try {
    for (;;) {
      const { done, value } = await stream.next()
      if (done || value === undefined) return { chunks, error: undefined }
      chunks.push(value)
    }
  } catch (error) {
    return { chunks, error }
  }
}

const someChunks = fc.array(
  fc.integer({ min: 1, max: 9 }).map((length) => 'x'.repeat(length)),
  { maxLength: 40 },
)

const ended = expect.objectContaining({ code: 'SLUICE_BUDGET_ENDED' })

describe.each(Object.entries(kinds))('meter of a %s stream', (kind, metered) => {
  it('passes chunks within the budget, and fails at the first one beyond', async () => {
    await fc.assert(
      fc.asyncProperty(someChunks, fc.integer({ min: 1, max: 120 }), async (chunks, units) => {
        const budget = await reserve(units)
        const { chunks: passed, error } = await readAll(metered(chunks, { budget }))
        let sum = 0
        const beyond = chunks.findIndex((chunk) => {
          sum += chunk.length
          return sum > units
        })
        const paid = beyond === -1 ? chunks : chunks.slice(0, beyond)
        expect(error).toEqual(beyond === -1 ? undefined : ended)
        expect(budget.spent).toBe(paid.join('').length)
        // A stream of Node that fails drops what it has buffered.
        const isExact = kind === 'web' || beyond === -1
        expect(passed).toEqual(isExact ? paid : paid.slice(0, passed.length))
      }),
      { numRuns: 60 },
    )
  })

  it('requests units for a chunk larger than a step, and fails at an unaffordable one', async () => {
    const limiter = createLimiter({ name: 'bytes', limit: 100, window: '1m', reserve: true })
    const budget = await limiter.reserve('ada', { units: 10, step: 4 })
    const chunks = ['x'.repeat(40), 'x'.repeat(30), 'x'.repeat(31)]
    expect((await readAll(metered(chunks, { budget }))).error).toEqual(ended)
    expect(budget.spent).toBe(70)
  })

  it('pauses until there are units again, then passes everything', async () => {
    const budget = await reserve(4, '2s')
    const chunks = ['abc', 'd', 'efgh']
    const startedAt = performance.now()
    const read = await readAll(metered(chunks, { budget, onEnd: 'pause' }))

    expect(read).toEqual({ chunks, error: undefined })
    expect(performance.now() - startedAt).toBeGreaterThan(1_500)
    expect(budget).toMatchObject({ spent: 8, left: 0 })
  })

  it('fails for an unaffordable chunk, and for a cost that is not a number', async () => {
    const never = await readAll(metered(['abcde'], { budget: await reserve(4), onEnd: 'pause' }))
    expect(never).toEqual({ chunks: [], error: ended })
    const odd = await readAll(metered([{} as string], { budget: await reserve(4) }))
    expect(odd.error).toMatchObject({ code: 'SLUICE_COST_INVALID' })
  })

  it.each<[string, (budget: Reservation, stream: Reading) => unknown]>([
    ['its reader leaves', (_, stream) => stream.leave()],
    ['the budget is cancelled', (budget) => budget.cancel()],
  ])('stops waiting, and ends the source, when %s', async (_, leave) => {
    const closed = vi.fn()
    async function* source() {
      try {
        yield 'ab'
        yield 'abc'
        yield 'never'
      } finally {
        closed()
      }
    }
    const budget = await reserve(4)
    const stream = metered(source(), { budget, onEnd: 'pause' })
    void readAll(stream)
    await until('it waits for units', () => budget.spent === 2)
    await leave(budget, stream)
    await until('the source has ended', () => closed.mock.calls.length === 1)
    expect(budget.spent).toBe(2)
  })

  it('reads only a few chunks ahead of its reader', async () => {
    let made = 0
    function* source() {
      for (; made < 100; made += 1) yield 'x'
    }
    const budget = await reserve(100)
    const stream = metered(source(), { budget })
    for (let i = 0; i < 3; i += 1) await stream.next()
    await new Promise((resolve) => setTimeout(resolve, 20))
    // The source is a Readable itself, which reads 16 chunks ahead.
    expect(made).toBeLessThan(30)
    expect(budget.spent).toBeLessThan(10)
    stream.leave()
  })

  it('passes on an error of the source', async () => {
    function* source() {
      yield 'a'
      throw new Error('broken')
    }
    const { error } = await readAll(metered(source(), { budget: await reserve(4) }))
    expect(error).toMatchObject({ message: 'broken' })
  })
})

it('passes everything without a budget, and rejects what is not a stream', async () => {
  const stream = Readable.from(['a'])
  expect(meter(stream, costOf, { budget: undefined })).toBe(stream)
  const budget = await reserve(1)
  expect(() => meter({} as Readable, costOf, { budget })).toThrow(/must be a ReadableStream/)
  expect(() => meter(stream, costOf, { budget, onEnd: 'stop' as never })).toThrow(/^onEnd/)
})

describe('docs/budgets.md', () => {
  const page = tryModules(pageModules('docs/budgets.md'))

  it('limits the bytes of uploads', async () => {
    const { app } = await page.load<{ app: express.Express }>('In middleware')
    const upload = await request(app).put('/files').send(Buffer.alloc(3_000_000))
    expect(upload.body).toEqual({ bytes: 3_000_000 })
    await until('the rest has come back', async () => {
      const answer = await request(app).put('/files').send('x')
      return /"bytes";r=59999\d\d;/.test(answer.get('ratelimit') ?? '')
    })
  })
})
