import {
  countOption,
  errorText,
  invalid,
  type Option,
  type OptionsOf,
  type RequiredOption,
  readOptions,
  textOption,
  warnOnce,
} from '@sluice/core'
import type { OutboundEvent } from './event.ts'

/** The options of `auditStream`. */
class AuditStreamTable {
  /** An ioredis or node-redis client, for a single node or Sentinel. */
  client: RequiredOption<object, Send> = senderOf
  /** Key of the stream. @default 'sluice:outbound' */
  key?: Option<string, string> = textOption('sluice:outbound', /./, 'a text')
  /** Approximate number of entries to keep: a whole number ≥ 1. @default 100_000 */
  maxKept?: Option<number, number> = countOption(100_000, { min: 1 })
  /**
   * Maximum number of entries in flight to Redis: a whole number ≥ 1. Further entries are dropped
   * until Redis answers.
   * @default 10_000
   */
  maxPending?: Option<number, number> = countOption(10_000, { min: 1 })
}

/** Options of `auditStream`. */
export interface AuditStreamOptions extends OptionsOf<AuditStreamTable> {}

/** An observer that writes events. */
export interface AuditStream {
  onEvent(event: OutboundEvent): void
  /** Entries that were not written: too many were in flight, or Redis refused them. */
  readonly dropped: number
}

type Send = (...args: string[]) => Promise<unknown>

/**
 * Writes events to a capped stream in Redis, `XRANGE sluice:outbound - +` reads them.
 * @example
 * createOutbound({ name: 'crm', limits, store, observers: auditStream({ client: redis }) })
 * @throws SluiceError if an option is unknown, missing or out of range
 */
export function auditStream(options: AuditStreamOptions): AuditStream {
  const settings = readOptions(new AuditStreamTable(), options, 'auditStream')
  const { client: send, key, maxKept, maxPending } = settings
  let pending = 0
  let dropped = 0

  function drop(reason: string): void {
    dropped += 1
    warnOnce(`an outbound event was not written: ${reason}`)
  }

  async function write(event: OutboundEvent): Promise<void> {
    pending += 1
    const fields = Object.entries(event).flatMap(([name, value]) => [name, String(value)])
    await send('XADD', key, 'MAXLEN', '~', String(maxKept), '*', ...fields).catch(
      (error: unknown) => drop(errorText(error)),
    )
    pending -= 1
  }

  return {
    get dropped() {
      return dropped
    },
    onEvent(event) {
      // The client keeps commands in memory until Redis answers.
      if (pending >= maxPending) drop(`${maxPending} are already in flight (maxPending)`)
      else void write(event)
    },
  }
}

/** Returns the client's method for sending a command by its arguments. */
function senderOf(client: unknown, option: string): Send {
  const isObject = typeof client === 'object' && client !== null
  const call: unknown = isObject && Reflect.get(client, 'call')
  const sendCommand: unknown = isObject && Reflect.get(client, 'sendCommand')
  if (typeof call === 'function') return async (...args) => call.apply(client, args)
  if (typeof sendCommand === 'function') return async (...args) => sendCommand.call(client, args)
  throw invalid({ option }, client, 'an ioredis or node-redis client')
}
