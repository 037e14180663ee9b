import type { ControlCall } from '@sluice/core'
import type { IRedisClient, Queue } from 'bullmq'
import {
  type ScriptArgument,
  type SharedScript,
  scriptText,
  sharedScripts,
} from '../redis/queue-scripts.ts'

const ownScripts = {
  'bullmq/end-waiting': 12,
  'bullmq/occupy': 5,
  'bullmq/release': 7,
  'bullmq/time': 1,
  'bullmq/undo': 5,
} as const
type ScriptName = SharedScript | keyof typeof ownScripts

/** Our scripts, run over the connection of a BullMQ queue. */
export class BullmqScripts {
  readonly client: Promise<IRedisClient>

  constructor(queue: Queue) {
    this.client = queue.getBackend().client.then((client) => {
      for (const [name, numberOfKeys] of Object.entries({ ...sharedScripts, ...ownScripts })) {
        client.defineCommand(commandOf(name), {
          numberOfKeys,
          lua: scriptText('bullmq/deadline', name),
        })
      }
      return client
    })
    // The queue reports the error. Without this it would be an unhandled rejection if no script
    // runs meanwhile.
    this.client.catch(() => undefined)
  }

  async run(
    name: ScriptName,
    keys: readonly string[],
    args: readonly ScriptArgument[],
    control?: ControlCall,
  ): Promise<unknown> {
    const client = await this.client
    const send = (untilMs: number | '') =>
      client.runCommand(commandOf(name), [...keys, ...args, untilMs])
    if (!control) return send('')
    const askMs = async () =>
      Number(await client.runCommand(commandOf('bullmq/time'), [keys[0] ?? '', '']))
    return control.send(askMs, send)
  }
}

function commandOf(name: string): string {
  return `sluiceQueue:${name}`
}
