import type { ControlCall } from '@sluice/core'
import { readLua } from '../../read-lua.ts'

export type ScriptArgument = string | number

/**
 * Function that runs a script of a broker in Redis. The keys are in one slot of a Cluster. A script
 * of a control call does nothing after the deadline of the call.
 */
export type RunScript<Name extends string> = (
  name: Name,
  keys: readonly string[],
  args: readonly ScriptArgument[],
  control?: ControlCall,
) => Promise<unknown>

/** The scripts of the bounds, keys and outcomes of a queue, and the number of their keys. */
export const sharedScripts = {
  begin: 2,
  depth: 4,
  enqueue: 6,
  find: 2,
  forget: 8,
  keep: 4,
  overdue: 1,
  reopen: 8,
  sweep: 3,
} as const

export type SharedScript = keyof typeof sharedScripts

/** Reads a script with the functions that scripts share. */
export function scriptText(...names: readonly string[]): string {
  return ['flow', 'place', 'kept', 'dead', ...names].map(readLua).join('\n')
}

/** Decodes a reply that is a list of texts or integers. */
export function texts(reply: unknown): string[] {
  return Array.isArray(reply) ? reply.map((item) => String(item ?? '')) : []
}
