import { Redis } from 'ioredis'

/** A reply of RESP2; an error inside an array stands as an `Error` value. */
export type Reply = string | number | null | Error | Reply[]

/** Sends one command over a connection of its own, which sends nothing else, so that tests can look at a server and its statistics. */
export async function sendCommand(
  [name = '', ...args]: readonly (string | number | Buffer)[],
  { port, timeoutMs = 5_000 }: { port: number; timeoutMs?: number },
): Promise<Reply> {
  const client = new Redis({
    ...{ port, lazyConnect: true, commandTimeout: timeoutMs, retryStrategy: () => null },
    ...{ protocol: 2, enableReadyCheck: false, disableClientInfo: true },
  })
  let reason: Error | undefined
  client.on('error', (error) => {
    reason = error
  })
  try {
    return (await client.call(String(name), ...args)) as Reply
  } catch (error) {
    throw reason ?? error
  } finally {
    client.disconnect()
  }
}
