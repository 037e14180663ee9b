import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { endsInTime } from '../harness/closed-loop.ts'
import { clientHeader } from '../http/http-contender.ts'
import type { Arrival } from './trace.ts'

/** Plays arrivals at their times, whether or not those before were answered; the latency of each. */
export async function play(port: number, arrivals: readonly Arrival[]): Promise<number[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 256 })
  const answers: Promise<number>[] = []
  const startedAt = performance.now()
  for (const { atMs, client } of arrivals) {
    const aheadMs = atMs - (performance.now() - startedAt)
    if (aheadMs > 1) await sleep(aheadMs)
    answers.push(ask({ agent, port, client }))
  }
  try {
    return await endsInTime(Promise.all(answers), 10_000)
  } finally {
    agent.destroy()
  }
}

function ask({ agent, port, client }: { agent: Agent; port: number; client: string }) {
  const startedAt = performance.now()
  return new Promise<number>((resolve, reject) => {
    const outgoing = request(
      { agent, port, host: '127.0.0.1', headers: { [clientHeader]: client } },
      (response) => {
        response.resume()
        response.on('end', () => resolve(performance.now() - startedAt))
        response.on('error', reject)
      },
    )
    outgoing.on('error', reject)
    outgoing.end()
  })
}
