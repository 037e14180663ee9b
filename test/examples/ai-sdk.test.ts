import { createLimiter, type Limiter } from '@sluice/core'
import { APICallError, generateText, streamText, wrapLanguageModel } from 'ai'
import { MockLanguageModelV3, simulateReadableStream } from 'ai/test'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { tokenBudget } from '../../examples/budgets/ai-sdk.ts'

type StreamResult = Extract<
  NonNullable<ConstructorParameters<typeof MockLanguageModelV3>[0]>['doStream'],
  { stream: unknown }
>
type Part = StreamResult['stream'] extends ReadableStream<infer P> ? P : never

/** The prompt takes 18 tokens by the estimate: the JSON of the messages has 71 characters. */
const prompt = 'abcd'.repeat(4)
const stop = { unified: 'stop', raw: undefined } as const
const usageOf = (input: number | undefined, output: number | undefined) => ({
  inputTokens: { total: input, noCache: input, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: output, text: output, reasoning: 0 },
})

function limits(limit: number) {
  const limiter = createLimiter({ name: 'tokens', limit, window: '1m', reserve: true })
  const left = async () => (await limiter.peek('ada')).remaining
  return { limiter, left }
}

const limited = (limiter: Limiter, model: MockLanguageModelV3) =>
  wrapLanguageModel({ model, middleware: tokenBudget(limiter, 'ada') })

/** A model that answers with words of one token each. */
function modelOf(words: number, usage: ReturnType<typeof usageOf>) {
  const parts: Part[] = [
    { type: 'stream-start', warnings: [] },
    { type: 'text-start', id: '1' },
    ...Array.from({ length: words }, (): Part => ({ type: 'text-delta', id: '1', delta: 'abc ' })),
    { type: 'text-end', id: '1' },
    { type: 'finish', finishReason: stop, usage },
  ]
  return new MockLanguageModelV3({
    doGenerate: {
      content: [{ type: 'text', text: 'abc '.repeat(words) }],
      finishReason: stop,
      usage,
      warnings: [],
    },
    doStream: async () => ({ stream: simulateReadableStream({ chunks: parts }) }),
  })
}

describe('the middleware for the AI SDK', () => {
  beforeEach(() => void vi.spyOn(console, 'error').mockImplementation(() => undefined))
  afterEach(() => void vi.restoreAllMocks())

  it.each([
    ['the usage that the model reports', usageOf(20, 40), 1_000 - 60],
    ['what was spent, without a report', usageOf(undefined, undefined), 1_000 - 18 - 30],
  ])('counts %s, after a stream', async (_, usage, rest) => {
    const { limiter, left } = limits(1_000)
    const model = limited(limiter, modelOf(30, usage))
    const { textStream } = streamText({ model, prompt, maxOutputTokens: 100 })
    const held: (number | undefined)[] = []
    for await (const _word of textStream) held.push(await left())
    expect(held).toHaveLength(30)
    expect(held[0]).toBe(1_000 - 118)
    expect(await left()).toBe(rest)
  })

  it('counts the usage of a non-streamed response', async () => {
    const { limiter, left } = limits(1_000)
    const model = limited(limiter, modelOf(30, usageOf(20, 40)))
    await generateText({ model, prompt, maxOutputTokens: 100 })
    expect(await left()).toBe(940)
  })

  it('refunds everything but the prompt if the model fails', async () => {
    const { limiter, left } = limits(1_500)
    const failing = new MockLanguageModelV3({
      doGenerate: () => Promise.reject(new Error('the vendor failed')),
      doStream: () => Promise.reject(new Error('the vendor failed')),
    })
    const model = limited(limiter, failing)
    await expect(generateText({ model, prompt })).rejects.toThrow('the vendor failed')
    await streamText({ model, prompt }).consumeStream()
    expect(await left()).toBe(1_500 - 2 * 18)
  })

  it('ends a stream beyond its budget within one part', async () => {
    const { limiter, left } = limits(60)
    const model = limited(limiter, modelOf(100, usageOf(20, 100)))
    const { textStream } = streamText({ model, prompt, maxOutputTokens: 30 })
    let words = 0
    const reading = (async () => {
      for await (const _word of textStream) words += 1
    })()
    await expect(reading).rejects.toMatchObject({ code: 'SLUICE_BUDGET_ENDED' })
    expect(words).toBe(60 - 18)
    expect(await left()).toBe(0)
  })

  it('makes the SDK wait for room, and rejects immediately what never fits', async () => {
    vi.useFakeTimers()
    try {
      const { limiter } = limits(200)
      const model = limited(limiter, modelOf(10, usageOf(20, 130)))
      const call = { model, prompt, maxOutputTokens: 100 }
      await generateText(call)
      const second = generateText(call)
      await vi.advanceTimersByTimeAsync(59_000)
      const pending = Symbol('pending')
      expect(await Promise.race([second, Promise.resolve(pending)])).toBe(pending)
      await vi.advanceTimersByTimeAsync(2_000)
      expect((await second).text).toContain('abc')
      const refused = generateText({ ...call, maxOutputTokens: 500 })
      await expect(refused).rejects.toSatisfy(APICallError.isInstance)
    } finally {
      vi.useRealTimers()
    }
  })
})
