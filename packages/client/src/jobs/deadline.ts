import { clockMs } from '../time/clock.ts'
import { pause, type Waiting } from '../time/pause.ts'

export interface Deadline {
  readonly atMs: number
  /** Aborts when the time is over, and with the signal of the caller. */
  readonly signal: AbortSignal
  /** Whether the time is over, and nobody aborted. */
  isOver(): boolean
  /** Must be called: no timer outlives it. What was sent with the signal goes on. */
  end(): void
}

export function deadlineIn(durationMs: number, signal: AbortSignal | undefined): Deadline {
  const atMs = clockMs() + durationMs
  const over = new AbortController()
  const ended: Waiting = new Set()
  pause(atMs, undefined, [ended]).then((how) => how === 'over' && over.abort())
  return {
    atMs,
    signal: signal ? AbortSignal.any([signal, over.signal]) : over.signal,
    isOver: () => over.signal.aborted && !signal?.aborted,
    end: () => {
      for (const end of [...ended]) end()
    },
  }
}

/** What work comes to, or the reason of a signal that aborts before: not everything that takes a signal obeys it. */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason)
    const end = (): void => signal.removeEventListener('abort', abort)
    work.then(resolve, reject).then(end)
    signal.addEventListener('abort', abort)
    if (signal.aborted) abort()
  })
}
