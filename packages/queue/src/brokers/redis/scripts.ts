import type { ControlCall } from '@sluice/core'
import { readLua } from '../../read-lua.ts'

/** The scripts of all brokers that keep jobs in Redis. */
export const sharedScripts = [
  'begin',
  'depth',
  'end',
  'enqueue',
  'find',
  'forget',
  'overdue',
  'put-back',
  'read',
  'reopen',
  'sweep',
  'watch',
] as const

export type SharedScript = (typeof sharedScripts)[number]

/**
 * Runs a script on the keys of a queue, which are in one Cluster slot. The script of a control call
 * does nothing after the call's deadline.
 */
export type RunScript<Name extends string> = (
  name: Name,
  args?: object,
  options?: { readonly text?: string; readonly control?: ControlCall | undefined },
) => Promise<unknown>

/** Reads a broker's script, with the part that all its scripts share. */
export function scriptText(broker: 'bullmq' | 'rabbitmq', name: string): string {
  return ['prelude', `${broker}/traits`, 'places', 'kept', name].map(readLua).join('\n')
}

/** Returns the key and the arguments of a script. */
export function scriptInput(prefix: string, args: object = {}, text = ''): [string, string[]] {
  const all = JSON.stringify({ now: Date.now(), ...args })
  return [`${prefix}sluice:places`, [prefix, all, text]]
}

/** Decodes a reply that is a list of strings or integers. */
export function texts(reply: unknown): string[] {
  return Array.isArray(reply) ? reply.map((item) => String(item ?? '')) : []
}
