import { type Decision, type Duration, notify, SluiceError, type Store } from '@sluice/core'
import { sleep } from '../sleep.ts'
import type { CallMade, OutboundObserver, RefusalReason, TellOutbound } from './outbound-event.ts'
import { checkCall, setUpOutbound } from './outbound-setup.ts'
import { Pause } from './pause.ts'
import { Slots } from './slots.ts'
import { pauseMs } from './vendor-answer.ts'
import { type Waiting, WaitLine } from './wait-line.ts'

export interface OutboundOptions {
  /** Names the third party: processes that use one name and one store share its quotas. Letters, digits, `.`, `_` and `-`. */
  name: string
  /** Its quotas: all of them hold. */
  limits: readonly OutboundLimit[]
  /** Where slots are counted: the Redis store for a fleet. @default memoryStore(): this process alone */
  store?: Store
  /** Calls that may wait at once in this process: a whole number ≥ 1. @default 1_000 */
  maxQueue?: number
  /** The longest that a call waits. @default '1m' */
  maxWait?: Duration
  /** Who calls, for the audit trail. @default host name and process id */
  by?: string
  /** Told of every call, and of what was not called. */
  onEvent?: OutboundObserver
}

export interface OutboundLimit {
  /** Units in any window: a whole number ≥ 1. */
  limit: number
  window: Duration
}

export interface CallOptions {
  /** Units of every quota that the call takes: a whole number ≥ 1. @default 1 */
  cost?: number
  /** The higher goes first. @default 0 */
  priority?: number
  /** Aborted: the call does not wait any more, or is told to stop. */
  signal?: AbortSignal
  /** What is called, for the audit trail. @default 'call' */
  label?: string
}

export interface CallContext {
  /** That of the options. */
  readonly signal: AbortSignal | undefined
}

export interface Outbound {
  /** Calls that wait in this process. */
  readonly waiting: number
  /**
   * Calls `call` when the quotas have room for it, and gives what it gives. It has to be one call, and to settle when the answer is there.
   * @throws SluiceError `SLUICE_OUTBOUND_REFUSED` when too many wait, or it waited too long; the signal's reason when that is aborted
   */
  schedule<T>(call: (context: CallContext) => Promise<T>, options?: CallOptions): Promise<T>
  /** As the global `fetch`, in its turn. The answer's Retry-After and RateLimit fields hold up the whole fleet. */
  fetch(input: string | URL, init?: RequestInit & Omit<CallOptions, 'signal'>): Promise<Response>
  /** Refuses what waits. What is under way goes on. */
  close(): Promise<void>
}

/**
 * Makes calls to a third party that never exceed its quotas, from any number of processes.
 * @example
 * const crm = createOutbound({ name: 'crm', limits: [{ limit: 20, window: '1s' }], store: redisStore(redis) })
 * const response = await crm.fetch('https://crm.example/contacts')
 * @throws SluiceError when an option is unknown, missing or out of range
 */
export function createOutbound(options: OutboundOptions): Outbound {
  const { name, quotas, store, maxQueue, maxWaitMs, by, onEvent } = setUpOutbound(options)
  const tell: TellOutbound = (event) => notify(onEvent, { outbound: name, by, ...event })
  const slots = new Slots(name, quotas, store)
  const pause = new Pause(name, store)
  const line = new WaitLine()
  const leaving = new Map<Waiting, (reason: RefusalReason) => void>()
  const most = Math.min(...quotas.map(({ limit }) => limit))
  let isAsking = false
  let isClosed = false

  /** Only the first in the line asks, so that a process asks once at a time. */
  async function ask(): Promise<void> {
    if (isAsking) return
    isAsking = true
    for (let first = line.first; first; first = line.first) {
      const { cost } = first
      const [isPaused, decision] = await Promise.all([pause.isOn(), slots.take(cost)])
      // It may have left meanwhile, or another may have come before it: whoever is first now, and as cheap, has the slots.
      const next = line.first
      if (decision && !isPaused && next?.cost === cost) {
        line.remove(next)
        next.admit(decision)
        continue
      }
      if (decision) await slots.giveBack(decision)
      await sleep(isPaused ? pausedRetryMs : slots.retryMs)
    }
    isAsking = false
  }

  /** Waits for the slots of a call. */
  function slotsFor(
    options: Required<Pick<CallOptions, 'cost' | 'priority'>>,
    signal?: AbortSignal,
  ) {
    return new Promise<Decision>((resolve, reject) => {
      const call: Waiting = {
        ...options,
        admit: (decision) => settle(() => resolve(decision)),
      }
      const timer = setTimeout(() => leave('timeout'), maxWaitMs)
      const abort = (): void => leave('aborted')
      function settle(answer: () => void): void {
        clearTimeout(timer)
        signal?.removeEventListener('abort', abort)
        leaving.delete(call)
        answer()
      }
      function leave(reason: RefusalReason): void {
        line.remove(call)
        settle(() => reject(new NotCalled(reason)))
      }
      signal?.addEventListener('abort', abort, { once: true })
      leaving.set(call, leave)
      line.add(call)
      void ask()
    })
  }

  async function schedule<T>(
    call: (context: CallContext) => Promise<T>,
    callOptions: CallOptions = {},
    answerOf: (value: T) => CallMade['answer'] = () => 'ok',
  ): Promise<T> {
    const { cost, priority, signal, label } = checkCall(callOptions, most)
    const askedAt = Date.now()
    const waitMs = (): number => Date.now() - askedAt
    let decision: Decision
    try {
      if (isClosed) throw new NotCalled('closed')
      if (signal?.aborted) throw new NotCalled('aborted')
      if (line.length >= maxQueue) throw new NotCalled('full')
      decision = await slotsFor({ cost, priority }, signal)
    } catch (error) {
      if (!(error instanceof NotCalled)) throw error
      tell({ type: 'refused', label, cost, waitMs: waitMs(), reason: error.reason })
      throw error.reason === 'aborted' ? signal?.reason : refusal(name, error.reason)
    }
    const startedAt = Date.now()
    const made = { type: 'call', label, cost, startedAt, waitMs: waitMs() } as const
    try {
      const value = await call({ signal })
      tell({ ...made, runMs: Date.now() - startedAt, answer: answerOf(value) })
      return value
    } catch (error) {
      tell({ ...made, runMs: Date.now() - startedAt, answer: 'failed' })
      throw error
    } finally {
      void slots.answered(decision, cost)
    }
  }

  return {
    get waiting() {
      return line.length
    },

    schedule: (call, callOptions) => schedule(call, callOptions),

    async fetch(input, { cost, priority, label, ...init } = {}) {
      const url = new URL(input)
      const { method = 'GET', signal } = init
      return schedule(
        async () => {
          const response = await fetch(url, init)
          const forMs = pauseMs(response)
          if (forMs > 0) {
            pause.begin(forMs)
            tell({ type: 'paused', forMs, status: response.status })
          }
          return response
        },
        {
          label: label ?? `${method} ${url.origin}${url.pathname}`,
          ...(cost === undefined ? {} : { cost }),
          ...(priority === undefined ? {} : { priority }),
          ...(signal ? { signal } : {}),
        },
        ({ status }) => status,
      )
    },

    async close() {
      isClosed = true
      for (const leave of [...leaving.values()]) leave('closed')
      await pause.close()
    },
  }
}

/** How often a process looks whether a pause is over. */
const pausedRetryMs = 100

/** Why a call was not made. */
class NotCalled extends Error {
  readonly reason: RefusalReason

  constructor(reason: RefusalReason) {
    super(reason)
    this.reason = reason
  }
}

const refusals: { readonly [reason in RefusalReason]: string } = {
  full: 'as many calls wait as may (maxQueue)',
  timeout: 'the call waited as long as it may (maxWait)',
  aborted: 'its signal was aborted',
  closed: 'the outbound was closed',
}

function refusal(name: string, reason: RefusalReason): SluiceError {
  return new SluiceError(
    'SLUICE_OUTBOUND_REFUSED',
    `no call was made to '${name}': ${refusals[reason]}`,
  )
}
