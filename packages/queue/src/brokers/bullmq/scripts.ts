import type { IRedisClient, Queue } from 'bullmq'
import { readLua } from '../../read-lua.ts'
import {
  type RunScript,
  type SharedScript,
  scriptInput,
  scriptText,
  sharedScripts,
} from '../redis/scripts.ts'

const ownScripts = ['bullmq/take', 'bullmq/undo', 'bullmq/time'] as const

export type ScriptName = SharedScript | (typeof ownScripts)[number]

/** Defines our scripts on the connection of a BullMQ queue. */
export async function withScripts(queue: Queue): Promise<IRedisClient> {
  const client = await queue.getBackend().client
  for (const name of [...sharedScripts, ...ownScripts]) {
    const lua = `${readLua('bullmq/deadline')}${scriptText('bullmq', name)}`
    client.defineCommand(commandOf(name), { numberOfKeys: 1, lua })
  }
  return client
}

export async function runScript(
  client: IRedisClient,
  prefix: string,
  ...[name, args, { text, control } = {}]: Parameters<RunScript<ScriptName>>
): Promise<unknown> {
  const [key, values] = scriptInput(prefix, args, text)
  const send = (untilMs: number | '', command: ScriptName = name) =>
    client.runCommand(commandOf(command), [key, ...values, untilMs])
  if (!control || name === 'read') return send('')
  return control.send(async () => Number(await send('', 'bullmq/time')), send)
}

function commandOf(name: string): string {
  return `sluiceQueue:${name}`
}
