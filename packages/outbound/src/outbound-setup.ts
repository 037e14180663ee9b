import { hostname } from 'node:os'
import {
  durationMs,
  given,
  invalid,
  knownFields,
  memoryStore,
  type Store,
  waitBoundMs,
  wholeNumber,
  windowMsOf,
} from '@sluice/core'
import type { OutboundObserver } from './outbound-event.ts'
import type { CallOptions, OutboundOptions } from './outbound-options.ts'
import type { Quota } from './quota-slots.ts'

/** The checked options of an outbound, with the defaults filled in. */
export interface OutboundSetup {
  readonly name: string
  readonly quotas: readonly Quota[]
  readonly store: Store
  readonly maxQueue: number
  readonly maxWaitMs: number
  readonly timeoutMs: number
  readonly lateArrivalMs: number
  readonly recoveryMs: number
  readonly by: string
  readonly onEvent: OutboundObserver | undefined
}

const outboundFields: readonly (keyof OutboundOptions)[] = [
  'name',
  'limits',
  'store',
  'maxQueue',
  'maxWait',
  'timeout',
  'lateArrival',
  'recovery',
  'by',
  'onEvent',
]

export function setUpOutbound(options: OutboundOptions): OutboundSetup {
  knownFields(options, 'createOutbound', outboundFields)
  const { name, by = `${hostname()}:${process.pid}`, onEvent } = options
  if (typeof name !== 'string' || !/^[A-Za-z0-9._-]{1,64}$/.test(name)) {
    throw invalid({ option: 'name' }, name, "1 to 64 letters, digits, '.', '_' and '-'")
  }
  if (onEvent !== undefined && typeof onEvent !== 'function') {
    throw invalid({ option: 'onEvent' }, onEvent, 'a function')
  }
  return {
    name,
    quotas: quotasOf(options.limits),
    store: given(options.store, memoryStore()),
    maxQueue: wholeNumber(given(options.maxQueue, 1_000), { option: 'maxQueue' }, { min: 1 }),
    maxWaitMs: waitBoundMs(given(options.maxWait, '1m'), 'maxWait'),
    timeoutMs: waitBoundMs(given(options.timeout, '1m'), 'timeout'),
    lateArrivalMs: waitBoundMs(given(options.lateArrival, '5s'), 'lateArrival'),
    recoveryMs: durationMs(given(options.recovery, '20s'), 'recovery'),
    by,
    onEvent,
  }
}

function quotasOf(limits: OutboundOptions['limits']): readonly Quota[] {
  if (!Array.isArray(limits) || limits.length === 0 || limits.length > 8) {
    throw invalid(
      { option: 'limits' },
      limits,
      "an array of 1 to 8, such as [{ limit: 20, window: '1s' }]",
    )
  }
  return limits.map((quota, index) => {
    const at = `limits[${index}]`
    knownFields(quota, at, ['limit', 'window'])
    const place = { option: `${at}.limit`, code: 'SLUICE_LIMIT_INVALID' } as const
    return {
      limit: wholeNumber(quota.limit, place, { min: 1 }),
      windowMs: windowMsOf(quota.window, `${at}.window`),
    }
  })
}

/** A checked call. */
export interface Call {
  readonly cost: number
  readonly priority: number
  readonly label: string
  readonly timeoutMs: number
  readonly signal: AbortSignal | undefined
}

/** No call may cost more than the smallest quota: it would wait for ever. */
export function checkCall(options: CallOptions, { quotas, timeoutMs }: OutboundSetup): Call {
  knownFields(options, 'schedule', ['cost', 'priority', 'signal', 'timeout', 'label'])
  const { cost = 1, priority = 0, label = 'call', timeout, signal } = options
  const most = Math.min(...quotas.map(({ limit }) => limit))
  wholeNumber(cost, { option: 'cost', code: 'SLUICE_COST_INVALID' }, { min: 1, max: most })
  if (!Number.isFinite(priority)) throw invalid({ option: 'priority' }, priority, 'a number')
  return {
    cost,
    priority,
    label,
    timeoutMs: timeout === undefined ? timeoutMs : waitBoundMs(timeout, 'timeout'),
    signal,
  }
}
