import { isSluiceError, notify } from '@sluice/core'
import { background } from './background.ts'
import { CallNotMade, callRefused, fetchCall, responseOf, timedCall } from './call.ts'
import type { TellOutbound } from './event.ts'
import { Pause } from './fleet/pause.ts'
import { type Held, Slots } from './fleet/quotas.ts'
import {
  type Call,
  type CallContext,
  type CallOptions,
  checkCall,
  type Outbound,
  type OutboundOptions,
  setUpOutbound,
} from './options.ts'
import { pauseMs, type VendorAnswer, vendorAnswerOf } from './third-party-answer.ts'
import { Turns } from './turns.ts'

/**
 * Makes calls to a third party that never exceed its quotas, from any number of processes.
 * @example
 * const crm = createOutbound({ name: 'crm', limits: [{ limit: 20, window: '1s' }], store: redisStore(redis) })
 * const response = await crm.fetch('https://crm.example/contacts')
 * @throws SluiceError when an option is unknown, missing or out of range
 */
export function createOutbound(options: OutboundOptions): Outbound {
  const setup = setUpOutbound(options)
  const { name, maxQueue, lateArrivalMs, by, onEvent } = setup
  const tell: TellOutbound = (event) => notify(onEvent, { outbound: name, by, ...event })
  const pause = new Pause(name, setup.store)
  const slots = new Slots(setup, pause, (forMs) => tell({ type: 'recovering', forMs }))
  const turns = new Turns(slots, setup.maxWaitMs)
  let isClosed = false

  /** Waits for the slots of a call, and tells of it when they do not come. */
  async function slotsFor(call: Call, waitMs: () => number): Promise<Held> {
    const { signal, label, cost } = call
    try {
      if (isClosed) throw new CallNotMade('closed')
      if (signal?.aborted) throw new CallNotMade('aborted')
      if (turns.waiting >= maxQueue) throw new CallNotMade('full')
      return await turns.wait(call, signal)
    } catch (error) {
      if (!(error instanceof CallNotMade)) throw error
      tell({ type: 'refused', label, cost, waitMs: waitMs(), reason: error.reason })
      throw error.reason === 'aborted' ? signal?.reason : callRefused(name, error.reason)
    }
  }

  async function schedule<T>(
    make: (context: CallContext) => Promise<T>,
    callOptions: CallOptions = {},
  ): Promise<T> {
    const call = checkCall(callOptions, setup)
    const { label, cost } = call
    const waitMs = stopwatch()
    const held = await slotsFor(call, waitMs)
    const made = { type: 'call', label, cost, startedAt: Date.now(), waitMs: waitMs() } as const
    const runMs = stopwatch()
    try {
      const value = await timedCall(name, make, call)
      slots.answered(held)
      tell({ ...made, runMs: runMs(), answer: heeded(value)?.status ?? 'ok' })
      return value
    } catch (error) {
      const response = responseOf(error)
      if (response === undefined) background(slots.unanswered(held, lateArrivalMs))
      else slots.answered(held)
      const otherwise = isSluiceError(error, 'SLUICE_OUTBOUND_TIMEOUT') ? 'timeout' : 'failed'
      tell({ ...made, runMs: runMs(), answer: heeded(response)?.status ?? otherwise })
      throw error
    }
  }

  /** Holds up the fleet for as long as an answer says, if what a call came to is one. */
  function heeded(value: unknown): VendorAnswer | undefined {
    const answer = vendorAnswerOf(value)
    const forMs = answer === undefined ? 0 : pauseMs(answer)
    if (answer === undefined || forMs === 0) return answer
    pause.begin(forMs)
    tell({ type: 'paused', forMs, status: answer.status })
    return answer
  }

  return {
    get waiting() {
      return turns.waiting
    },

    schedule: (make, callOptions) => schedule(make, callOptions),

    async fetch(input, init) {
      const { send, options: callOptions } = fetchCall(input, init)
      return schedule(send, callOptions)
    },

    async close() {
      isClosed = true
      turns.close()
      await Promise.all([pause.close(), slots.close()])
    },
  }
}

/** Whole milliseconds from now on, by a clock that never steps. */
function stopwatch(): () => number {
  const startedAt = performance.now()
  return () => Math.round(performance.now() - startedAt)
}
