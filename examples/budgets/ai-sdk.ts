import type { Limiter, Reservation } from '@sluice/core'
import { meter } from '@sluice/http'
import { APICallError, type LanguageModelMiddleware } from 'ai'
import { tokensIn } from './ask.ts'

type Generate = NonNullable<LanguageModelMiddleware['wrapGenerate']>
type Usage = Awaited<ReturnType<Generate>>['usage']
type Stream = NonNullable<LanguageModelMiddleware['wrapStream']>
type Part = Awaited<ReturnType<Stream>>['stream'] extends ReadableStream<infer P> ? P : never
type Params = Parameters<Generate>[0]['params']

/** Maximum tokens of an answer if the call sets none. */
const maxAnswer = 1_000

/**
 * Middleware for the AI SDK: a call holds its tokens, spends them while the answer streams, and
 * settles by the usage that the model reports.
 * @example
 * const model = wrapLanguageModel({ model: openai('gpt-5'), middleware: tokenBudget(limiter, tenant) })
 */
export function tokenBudget(limiter: Limiter, key: string): LanguageModelMiddleware {
  async function reserve({ prompt, maxOutputTokens = maxAnswer }: Params) {
    const promptTokens = tokensIn(JSON.stringify(prompt))
    const budget = await limiter.reserve(key, { units: promptTokens + maxOutputTokens })
    if (!budget.allowed) throw refusal(budget.decision.retryAfterMs)
    budget.spend(promptTokens)
    return budget
  }

  return {
    specificationVersion: 'v3',
    async wrapGenerate({ doGenerate, params }) {
      await using budget = await reserve(params)
      const answer = await doGenerate()
      await budget.settle({ total: tokensOf(answer.usage) })
      return answer
    },
    async wrapStream({ doStream, params }) {
      const budget = await reserve(params)
      try {
        const { stream, ...rest } = await doStream()
        const paid = meter(stream, costOf, { budget })
        return { ...rest, stream: ReadableStream.from(settling(paid, budget)) }
      } catch (error) {
        await budget.settle()
        throw error
      }
    },
  }
}

const costOf = (part: Part): number => ('delta' in part ? tokensIn(part.delta) : 0)

/** Settles before the stream ends, whoever ends it. Without a usage report, the spent units count. */
async function* settling(parts: ReadableStream<Part>, budget: Reservation): AsyncGenerator<Part> {
  let total: number | undefined
  try {
    for await (const part of parts) {
      if (part.type === 'finish') total = tokensOf(part.usage)
      yield part
    }
  } finally {
    await budget.settle({ total })
  }
}

function tokensOf({ inputTokens, outputTokens }: Usage): number | undefined {
  const [input, output] = [inputTokens.total, outputTokens.total]
  return input === undefined || output === undefined ? undefined : input + output
}

/** An error after which the SDK waits and retries on its own, unless no wait helps. */
function refusal(retryAfterMs: number): APICallError {
  const isRetryable = Number.isFinite(retryAfterMs)
  return new APICallError({
    message: 'the token budget is used up',
    url: '',
    requestBodyValues: {},
    statusCode: 429,
    isRetryable,
    responseHeaders: isRetryable ? { 'retry-after-ms': String(retryAfterMs) } : {},
  })
}
