import { notify } from '@sluice/core'
import { background } from './background.ts'
import { CallNotMade, callRefused } from './call-refused.ts'
import { fetchCall } from './fetch-call.ts'
import type { CallMade, TellOutbound } from './outbound-event.ts'
import type { CallContext, CallOptions, Outbound, OutboundOptions } from './outbound-options.ts'
import { type Call, checkCall, setUpOutbound } from './outbound-setup.ts'
import { Pause } from './pause.ts'
import { type Held, Slots } from './slots.ts'
import { CallTimeout, hasAnswer, timedCall } from './timed-call.ts'
import { Turns } from './turns.ts'
import { pauseMs } from './vendor-answer.ts'

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
    answerOf: (value: T) => CallMade['answer'] = () => 'ok',
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
      tell({ ...made, runMs: runMs(), answer: answerOf(value) })
      return value
    } catch (error) {
      if (hasAnswer(error)) slots.answered(held)
      else background(slots.unanswered(held, lateArrivalMs))
      const answer = error instanceof CallTimeout ? 'timeout' : 'failed'
      tell({ ...made, runMs: runMs(), answer })
      throw error
    }
  }

  return {
    get waiting() {
      return turns.waiting
    },

    schedule: (make, callOptions) => schedule(make, callOptions),

    async fetch(input, init) {
      const { send, options: callOptions } = fetchCall(input, init)
      return schedule(
        async (context) => {
          const response = await send(context)
          const forMs = pauseMs(response)
          if (forMs > 0) {
            pause.begin(forMs)
            tell({ type: 'paused', forMs, status: response.status })
          }
          return response
        },
        callOptions,
        ({ status }) => status,
      )
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
