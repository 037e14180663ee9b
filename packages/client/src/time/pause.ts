import { clockMs, never } from './clock.ts'

/** Longer timers overflow, and fire at once. */
export const maxTimerMs = 2_147_483_647

/** Lets somebody end a pause early. */
export type Waiting = Set<() => void>

/**
 * Resolves when the clock has reached `untilMs`, never earlier, to `'over'`; when one of `waiting` is called, to
 * `'woken'`. Rejects with the signal's reason when that aborts. No timer or listener outlives it; until `Infinity` there
 * is none.
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
