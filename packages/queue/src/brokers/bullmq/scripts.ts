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

/** Our scripts, run over the connection of a BullMQ queue. */
export class BullmqScripts {
  readonly client: Promise<IRedisClient>

  constructor(queue: Queue) {
    this.client = queue.getBackend().client.then((client) => {
      for (const name of [...sharedScripts, ...ownScripts]) {
        const lua = `${readLua('bullmq/deadline')}${scriptText('bullmq', name)}`
        client.defineCommand(commandOf(name), { numberOfKeys: 1, lua })
      }
      return client
    })
    // The queue reports the error. Without this it would be an unhandled rejection if no script
    // runs meanwhile.
    this.client.catch(() => undefined)
  }

  async run(
    prefix: string,
    ...[name, args, { text, control } = {}]: Parameters<RunScript<ScriptName>>
  ): Promise<unknown> {
    const client = await this.client
    const [key, values] = scriptInput(prefix, args, text)
    const send = (untilMs: number | '', command: ScriptName = name) =>
      client.runCommand(commandOf(command), [key, ...values, untilMs])
    // A look-up changes nothing: the change that follows keeps the deadline.
    if (name === 'read') control?.promise()
    if (!control || name === 'read') return send('')
    return control.send(async () => Number(await send('', 'bullmq/time')), send)
  }
}

function commandOf(name: string): string {
  return `sluiceQueue:${name}`
}
