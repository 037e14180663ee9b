/** Maximum timer duration (ms). Longer timers overflow and fire at once. */
export const maxTimerMs = 2_147_483_647

/** Functions that end pauses early. */
export type Waiting = Set<() => void>

/**
 * Waits until `untilMs`, and resolves to `'over'`, or to `'woken'` if its function in `waiting` is
 * called first. Rejects when the signal aborts. No timer or listener outlives the wait.
 */
export function pause(
  untilMs: number,
  signal: AbortSignal | undefined,
  waiting: readonly Waiting[] = [],
): Promise<'over' | 'woken'> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    let timer: ReturnType<typeof setTimeout> | undefined
    const end = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      for (const set of waiting) set.delete(wake)
    }
    const abort = (): void => {
      end()
      reject(signal?.reason)
    }
    const wake = (): void => {
      end()
      resolve('woken')
    }
    // Timers may fire up to a millisecond early.
    const tick = (): void => {
      const leftMs = untilMs - clockMs()
      if (leftMs === never) return
      if (leftMs > 0) {
        timer = setTimeout(tick, Math.min(Math.ceil(leftMs), maxTimerMs))
      } else {
        end()
        resolve('over')
      }
    }
    signal?.addEventListener('abort', abort)
    for (const set of waiting) set.add(wake)
    tick()
  })
}

/** Milliseconds of a clock that never jumps, unlike `Date.now()`, to measure waits. */
export function clockMs(): number {
  return performance.now()
}

/** A time that never comes. */
export const never: number = Number.POSITIVE_INFINITY

export interface Deadline {
  readonly atMs: number
  /** Aborts after the timeout, or when the caller's signal aborts. */
  readonly signal: AbortSignal
  /** True if the time is up and the caller has not aborted. */
  isOver(): boolean
  /** Ends the timer; must be called. Requests with the signal continue. */
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

/** Settles like the work, or rejects when the signal aborts. Some work ignores its signal. */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason)
    const end = (): void => signal.removeEventListener('abort', abort)
    work.then(resolve, reject).then(end)
    signal.addEventListener('abort', abort)
    if (signal.aborted) abort()
  })
}
