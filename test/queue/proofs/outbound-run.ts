import { setTimeout as sleep } from 'node:timers/promises'
import { bundledScript } from '../../support/bundled-script.ts'
import { startChild } from '../../support/child.ts'
import { startRedis } from '../../support/redis-server.ts'
import { serve } from '../../support/serve.ts'
import { until } from '../../support/until.ts'

export interface OutboundPlan {
  readonly processes: number
  readonly seconds: number
  /** What the third party allows in a window, which slides. */
  readonly limit: number
  readonly windowMs: number
  /** The most that a call is under way before it is counted, and its answer after: each call draws both. */
  readonly latencyMs: number
  /** Redis is killed so often, for so long, and comes back empty. @default never */
  readonly outages?: { readonly count: number; readonly awayMs: number }
}

/** Has several processes call a third party that counts every violation, and says how they did. */
export async function outboundRun(plan: OutboundPlan) {
  const { processes, seconds, limit, windowMs, latencyMs } = plan
  const redis = await startRedis()
  let current = redis
  const counted: number[] = []
  const resumedAfterMs: number[] = []
  let lastMadeAt = 0
  let violations = 0
  const vendor = await serve(async (_request, response) => {
    lastMadeAt = performance.now()
    await sleep(Math.random() * latencyMs)
    const nowMs = performance.now()
    const inWindow = counted.filter((time) => time > nowMs - windowMs).length
    counted.push(nowMs)
    if (inWindow >= limit) violations += 1
    await sleep(Math.random() * latencyMs)
    response.writeHead(inWindow >= limit ? 429 : 200).end()
  })
  const script = await bundledScript(new URL('./outbound-process.ts', import.meta.url))
  const args = [redis.url, vendor.url, limit, windowMs].map(String)
  const children = Array.from({ length: processes }, () => startChild<never>(script, { args }))
  try {
    await until('calls come', async () => counted.length > 0)
    await Promise.all([sleep(seconds * 1_000), loseAll()])
    const [firstAt = 0] = counted
    const inTime = counted.filter((time) => time < firstAt + seconds * 1_000)
    return {
      calls: inTime.length,
      /** Calls that were one too many in the window before. */
      violations,
      /** Share of the quota that was used, from the first call on. */
      used: (inTime.length * windowMs) / (limit * seconds * 1_000),
      /** How long after each return of Redis the next call was made. */
      resumedAfterMs,
    }
  } finally {
    for (const child of children) child.stop()
    await vendor.close()
    await current.stop()
  }

  async function loseAll(): Promise<void> {
    const { count, awayMs } = plan.outages ?? { count: 0, awayMs: 0 }
    for (let i = 1; i <= count; i += 1) {
      await sleep((seconds * 1_000) / (count + 1) - awayMs)
      await current.kill()
      await sleep(awayMs)
      current = await startRedis({ port: redis.port })
      const backAt = performance.now()
      await until('calls are made again', async () => lastMadeAt > backAt)
      resumedAfterMs.push(Math.round(lastMadeAt - backAt))
    }
  }
}
