import autocannon from 'autocannon'
import { endsInTime } from '../harness/closed-loop.ts'
import { clientHeader } from './http-contenders.ts'

export interface Load {
  readonly port: number
  readonly durationMs: number
  /** Divides `clients`. @default 40 */
  readonly connections?: number
}

/** In all; those of a connection take turns. */
export const clients = 1_000

/** A fixed number of connections, each of which asks again as soon as it was answered. */
export async function load({ port, durationMs, connections = 40 }: Load) {
  const clientsPerConnection = clients / connections
  const latenciesMs: number[] = []
  const statuses = new Map<number, number>()
  let connection = 0
  let startedAt = 0
  let endedAt = 0

  const finished = new Promise<void>((resolve, reject) => {
    const instance = autocannon(
      {
        url: `http://127.0.0.1:${port}`,
        connections,
        // Ended by the timer below; it looks whether it has to stop as often as it takes samples.
        duration: 60 + durationMs / 1000,
        sampleInt: 20,
        setupClient: (client) => {
          const first = connection * clientsPerConnection
          connection += 1
          const numbers = Array.from({ length: clientsPerConnection }, (_, index) => first + index)
          client.setRequests(
            numbers.map((number) => ({ headers: { [clientHeader]: `client-${number}` } })),
          )
        },
      },
      (error: unknown) => {
        if (error) reject(error)
        else resolve()
      },
    )
    instance.on('start', () => {
      startedAt = performance.now()
      setTimeout(() => instance.stop(), durationMs)
    })
    instance.on('response', (_client, status, _bytes, latencyMs) => {
      endedAt = performance.now()
      latenciesMs.push(latencyMs)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    })
  })
  await endsInTime(finished, durationMs)
  return { requests: latenciesMs.length, elapsedMs: endedAt - startedAt, latenciesMs, statuses }
}
