import { type AnyClient, asIoredis } from '../harness/clients.ts'

export interface RecordedCalls {
  /** Each sends one call again, as it was. */
  readonly calls: readonly (() => Promise<unknown>)[]
  /** On average. */
  readonly checksPerCall: number
}

type Send = (command: string, ...args: (string | Buffer)[]) => Promise<unknown>

const maxCalls = 1_000

/** Takes down the EVALSHA calls that are sent while `work` runs. */
export async function recordCalls(
  anyClient: AnyClient,
  work: () => Promise<unknown>,
): Promise<RecordedCalls> {
  const client = asIoredis(anyClient)
  const recorded: Parameters<Send>[] = []
  const send: Send = client.call.bind(client)
  Object.assign(client, {
    call: (...call: Parameters<Send>) => {
      recorded.push(call)
      return send(...call)
    },
  })
  await work()
  Reflect.deleteProperty(client, 'call')
  const calls = recorded.filter(([command]) => command === 'evalsha').slice(-maxCalls)
  if (calls.length === 0) throw new Error('no call was recorded')
  const keys = calls.reduce((sum, [, , numberOfKeys]) => sum + Number(numberOfKeys), 0)
  return {
    calls: calls.map((call) => () => send(...call)),
    checksPerCall: keys / calls.length,
  }
}
