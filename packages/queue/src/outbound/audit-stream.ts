import { given, invalid, knownFields, warnOnce, wholeNumber } from '@sluice/core'
import type { OutboundEvent, OutboundObserver } from './outbound-event.ts'

export interface AuditStreamOptions {
  /** An ioredis or node-redis client, of a single node or Sentinel. */
  client: object
  /** The key of the stream. @default 'sluice:outbound' */
  key?: string
  /** About how many entries are kept, the newest: a whole number ≥ 1. @default 100_000 */
  maxLength?: number
}

type Send = (...args: string[]) => Promise<unknown>

/**
 * Writes events to a capped stream in Redis, `XRANGE sluice:outbound - +` reads them.
 * @example
 * createOutbound({ name: 'crm', limits, store, onEvent: auditStream({ client: redis }) })
 * @throws SluiceError when an option is unknown, missing or out of range
 */
export function auditStream(options: AuditStreamOptions): OutboundObserver {
  knownFields(options, 'auditStream', ['client', 'key', 'maxLength'])
  const { key = 'sluice:outbound' } = options
  const maxLength = wholeNumber(
    given(options.maxLength, 100_000),
    { option: 'maxLength' },
    { min: 1 },
  )
  const send = senderOf(options.client)
  return (event) => {
    const capped = ['XADD', key, 'MAXLEN', '~', String(maxLength), '*', ...fieldsOf(event)]
    send(...capped).catch((error) => {
      warnOnce(
        `an outbound event was not written: ${error instanceof Error ? error.message : error}`,
      )
    })
  }
}

function fieldsOf(event: OutboundEvent): string[] {
  return Object.entries(event).flatMap(([name, value]) => [name, String(value)])
}

/** What both clients have for a command that is put together by hand. */
function senderOf(client: unknown): Send {
  if (hasMethod(client, 'call')) return async (...args) => client.call(...args)
  if (hasMethod(client, 'sendCommand')) return async (...args) => client.sendCommand(args)
  throw invalid({ option: 'client' }, client, 'an ioredis or node-redis client')
}

function hasMethod<Name extends string>(
  client: unknown,
  name: Name,
): client is { [key in Name]: (...args: unknown[]) => unknown } {
  if (typeof client !== 'object' || client === null) return false
  return typeof Reflect.get(client, name) === 'function'
}
