import {
  isSluiceError,
  joined,
  maxTimerMs,
  noteRelease,
  notify,
  readOptions,
  TurnQueue,
} from '@sluice/core'
import { callRefused, fetchCall, responseOf, timedCall } from './call.ts'
import type { EmitOutbound, RefusalReason } from './event.ts'
import { Pause } from './fleet/pause.ts'
import { type CallLease, FleetQuotas } from './fleet/quotas.ts'
import {
  type Call,
  type CallContext,
  type CallOptions,
  CallTable,
  type Outbound,
  type OutboundOptions,
  OutboundTable,
} from './options.ts'
import { pauseMs, type ThirdPartyAnswer, thirdPartyAnswerOf } from './third-party-answer.ts'

/**
 * Makes calls to a third party that never exceed its quotas, from any number of processes.
 * @example
 * const limits = [{ limit: 20, window: '1s' }]
 * const crm = createOutbound({ name: 'crm', limits, store: redisStore(redis) })
 * const response = await crm.fetch('https://crm.example/contacts')
 * @throws SluiceError if an option is unknown, missing or out of range
 */
export function createOutbound(options: OutboundOptions): Outbound {
  noteRelease('@sluice/outbound')
  const setup = readOptions(new OutboundTable(), options, 'createOutbound')
  const { name, maxQueue, lateArrival, by, observers } = setup
  const onEvent = joined(observers.map((each) => each.onEvent?.bind(each)))
  const emit: EmitOutbound = (event) => notify(onEvent, { outbound: name, by, ...event })
  const pause = new Pause(name, setup.store)
  const quotas = new FleetQuotas(setup, pause, (forMs) => emit({ type: 'recovering', forMs }))
  const turns = new TurnQueue<CallLease>(quotas)
  const callTable = new CallTable(setup)
  let isClosed = false
  const observed = {
    outbound: name,
    get waiting() {
      return turns.waiting
    },
  }
  for (const each of observers) notify(each.onOutbound?.bind(each), observed)

  /** Waits for the units of a call. Reports a call that is not made. */
  async function leaseFor(call: Call, waitMs: () => number): Promise<CallLease> {
    const { cost, priority, signal, label } = call
    const isFull = turns.waiting >= maxQueue && !signal?.aborted
    const left: RefusalReason | undefined = isClosed ? 'closed' : isFull ? 'full' : undefined
    const turn = left
      ? { left }
      : await turns.wait({ cost, priority, signal, maxWaitMs: setup.maxWait })
    if ('grant' in turn) return turn.grant
    const reason = turn.left
    emit({ type: 'refused', label, cost, waitMs: waitMs(), reason })
    throw reason === 'aborted' ? signal?.reason : callRefused(name, reason)
  }

  async function schedule<T>(
    make: (context: CallContext) => Promise<T>,
    callOptions: CallOptions = {},
  ): Promise<T> {
    const call = readOptions(callTable, callOptions, 'schedule')
    const { label, cost } = call
    const waitMs = stopwatch()
    const lease = await leaseFor(call, waitMs)
    const made = { type: 'call', label, cost, startedAt: Date.now(), waitMs: waitMs() } as const
    const runMs = stopwatch()
    try {
      const value = await timedCall(name, make, call)
      quotas.answered(lease)
      emit({ ...made, runMs: runMs(), answer: obeyed(value)?.status ?? 'ok' })
      return value
    } catch (error) {
      const response = responseOf(error)
      // A call without an answer may still arrive.
      if (response === undefined)
        setTimeout(() => quotas.answered(lease), Math.min(lateArrival, maxTimerMs)).unref()
      else quotas.answered(lease)
      const otherwise = isSluiceError(error, 'SLUICE_OUTBOUND_TIMEOUT') ? 'timeout' : 'failed'
      emit({ ...made, runMs: runMs(), answer: obeyed(response)?.status ?? otherwise })
      throw error
    }
  }

  /** Pauses the fleet as an answer demands. Returns the answer, if the call's result is one. */
  function obeyed(value: unknown): ThirdPartyAnswer | undefined {
    const answer = thirdPartyAnswerOf(value)
    const forMs = answer === undefined ? 0 : pauseMs(answer)
    if (answer === undefined || forMs === 0) return answer
    pause.begin(forMs)
    emit({ type: 'paused', forMs, status: answer.status })
    return answer
  }

  return {
    get waiting() {
      return turns.waiting
    },

    schedule,

    async fetch(input, init) {
      const { send, options: callOptions } = fetchCall(input, init)
      return schedule(send, callOptions)
    },

    async close() {
      isClosed = true
      turns.close()
      await Promise.all([pause.close(), quotas.close()])
    },
  }
}

/** Returns a stopwatch in whole milliseconds, using a clock that never steps. */
function stopwatch(): () => number {
  const startedAt = performance.now()
  return () => Math.round(performance.now() - startedAt)
}
