import type { IRedisClient, Queue } from 'bullmq'
import { readLua } from '../../read-lua.ts'

const keyCounts = {
  begin: 2,
  depth: 4,
  'end-waiting': 12,
  enqueue: 5,
  keep: 4,
  occupy: 5,
  overdue: 1,
  release: 7,
  reopen: 8,
  forget: 8,
  find: 2,
  sweep: 3,
  undo: 5,
} as const
type ScriptName = keyof typeof keyCounts

type Argument = string | number

/** Our scripts, run over the connection of a BullMQ queue. */
export class BullmqScripts {
  readonly client: Promise<IRedisClient>

  constructor(queue: Queue) {
    this.client = queue.getBackend().client.then((client) => {
      for (const [name, numberOfKeys] of Object.entries(keyCounts)) {
        client.defineCommand(commandOf(name), { numberOfKeys, lua: luaOf(name) })
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
    args: readonly Argument[],
  ): Promise<unknown> {
    return (await this.client).runCommand(commandOf(name), [...keys, ...args])
  }
}

function commandOf(name: string): string {
  return `sluiceQueue:${name}`
}

function luaOf(name: string): string {
  return ['flow', 'place', 'kept', name].map(readLua).join('\n')
}
