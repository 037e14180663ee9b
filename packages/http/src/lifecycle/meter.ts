import type { Readable } from 'node:stream'
import {
  invalid,
  oneOf,
  orDefault,
  type Reservation,
  SluiceError,
  sleep,
  wholeNumber,
} from '@sluice/core'

/** Options of `meter`. */
export interface MeterOptions {
  /** The budget that pays: `request.rateLimit?.budget()`. Without one, every chunk passes. */
  readonly budget: Reservation | undefined
  /**
   * Behaviour if the budget cannot pay for a chunk: with `'abort'` the stream fails, with `'pause'`
   * it waits for units.
   * @default 'abort'
   */
  readonly onEnd?: 'abort' | 'pause' | undefined
}

/** In ms: units may return a little later than announced. */
const shortestWaitMs = 20

/**
 * Spends units of a budget for each chunk of a stream before the chunk passes. Returns a stream of
 * the same kind; canceling it cancels the source.
 * @param costOf returns the units of a chunk, a whole number ≥ 0
 * @example
 * const body = meter(answer.body, tokensOf, { budget: req.rateLimit?.budget() })
 */
export function meter<Chunk>(
  stream: ReadableStream<Chunk>,
  costOf: (chunk: Chunk) => number,
  options: MeterOptions,
): ReadableStream<Chunk>
export function meter(
  stream: Readable,
  // biome-ignore lint/suspicious/noExplicitAny: a stream of Node has no type of chunks
  costOf: (chunk: any) => number,
  options: MeterOptions,
): Readable
export function meter(
  stream: ReadableStream | Readable,
  costOf: (chunk: unknown) => number,
  { budget, onEnd }: MeterOptions,
): ReadableStream | Readable {
  const mode = oneOf(orDefault(onEnd, 'abort'), { option: 'onEnd' }, ['abort', 'pause'])
  if (!budget) return stream
  const stop = new AbortController()
  if (budget.signal.aborted) stop.abort()
  else budget.signal.addEventListener('abort', () => stop.abort())
  const pay = async (chunk: unknown): Promise<void> => {
    const place = { option: 'the cost of a chunk', code: 'SLUICE_COST_INVALID' } as const
    const units = wholeNumber(costOf(chunk), place, { min: 0 })
    if (mode === 'pause') await waitFor(units, budget, stop.signal)
    else if (budget.left < units && budget.step > 0) await budget.more(units - budget.left)
    if (!stop.signal.aborted && budget.spend(units)) return
    const message = `a chunk costs ${units} units, but the budget has only ${budget.left} left`
    throw new SluiceError('SLUICE_BUDGET_ENDED', message)
  }
  if ('getReader' in stream) return webMeter(stream, pay, stop)
  if ('pipe' in stream) return nodeMeter(stream, pay, stop)
  const legal = 'a ReadableStream, or a Node Readable'
  throw invalid({ option: 'the stream of meter()' }, stream, legal)
}

type Pay = (chunk: unknown) => Promise<void>

async function waitFor(units: number, budget: Reservation, stop: AbortSignal): Promise<void> {
  while (budget.left < units && !stop.aborted) {
    const { allowed, retryAfterMs, outcomes } = await budget.more(units - budget.left)
    if (allowed) continue
    const isNever = retryAfterMs === Number.POSITIVE_INFINITY
    if (isNever || outcomes.some(({ limit }) => limit < units)) return
    await sleep(Math.max(retryAfterMs, shortestWaitMs), stop)
  }
}

function webMeter(stream: ReadableStream, pay: Pay, stop: AbortController): ReadableStream {
  const reader = stream.getReader()
  const cancel = (reason: unknown): Promise<void> => {
    stop.abort()
    return reader.cancel(reason)
  }
  async function pull(controller: ReadableStreamDefaultController): Promise<void> {
    const { done, value } = await reader.read()
    if (done) return controller.close()
    try {
      await pay(value)
    } catch (error) {
      void cancel(error).catch(() => undefined) // The reader receives the relevant error.
      throw error
    }
    controller.enqueue(value)
  }
  return new ReadableStream({ pull, cancel }, { highWaterMark: 0 })
}

function nodeMeter(stream: Readable, pay: Pay, stop: AbortController): Readable {
  // Not imported: other runtimes have no Node streams.
  const { pipeline, Transform } = globalThis.process.getBuiltinModule('node:stream')
  const metered = new Transform({
    objectMode: true,
    highWaterMark: 1,
    transform(chunk, _encoding, done) {
      pay(chunk).then(() => done(null, chunk), done)
    },
  })
  return pipeline(stream, metered, () => stop.abort())
}
