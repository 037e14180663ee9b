import { createHash } from 'node:crypto'
import type { RedisArgument, RedisClient } from './clients/redis-client.ts'
import { readLua } from './read-lua.ts'

/** How `sliding-log` is stored: packed, or as a textbook sorted set that people can read with redis-cli. */
export type Encoding = 'packed' | 'sorted-set'

/** A Lua script with the SHA-1 by which the server knows it. */
export interface Script {
  readonly text: string
  readonly sha1: string
}

const slidingLogLayouts: { readonly [encoding in Encoding]: readonly string[] } = {
  packed: [
    'sliding-log-string',
    'sliding-log-block-form',
    'sliding-log-blocks',
    'sliding-log-blocks-plain',
    'sliding-log-packed',
  ],
  'sorted-set': ['sliding-log-sorted-set'],
}

/** Puts the script together from its files. */
export function loadScript(encoding: Encoding): Script {
  const algorithms = [
    'sliding-log',
    ...slidingLogLayouts[encoding],
    'sliding-counter',
    'fixed-window',
    'token-bucket',
    'leaky-bucket',
    'concurrency',
    'penalty',
  ]
  const text = ['prelude', ...algorithms.map((name) => `algorithms/${name}`), 'decide']
    .map(readLua)
    .join('\n')
  return { text, sha1: createHash('sha1').update(text).digest('hex') }
}

/**
 * Runs the script by its SHA-1, and sends its text only to a server that says it does not know it. After any other error
 * it is not run again: it may have counted. Nodes of a Cluster learn it one by one, each with the first call for it.
 */
export async function runScript(
  client: RedisClient,
  script: Script,
  { keys, args }: { keys: readonly string[]; args: readonly RedisArgument[] },
): Promise<unknown> {
  const rest = [String(keys.length), ...keys, ...args]
  const [key = ''] = keys
  try {
    return await client.send(['EVALSHA', script.sha1, ...rest], key)
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error
    return client.send(['EVAL', script.text, ...rest], key)
  }
}
