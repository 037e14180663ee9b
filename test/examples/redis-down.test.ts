import { inspect } from 'node:util'
import { createLimiter, type ResilienceEvent } from '@sluice/core'
import { redisStore } from '@sluice/redis'
import { Redis } from 'ioredis'
import { expect, it } from 'vitest'
import { startRedis } from '../support/redis-server.ts'
import { until } from '../support/until.ts'
import { readText } from '../support/workspace.ts'

const section = readText('README.md').split('## When Redis is down')[1]?.split('\n## ')[0] ?? ''
const shown = (/^```js\n(.*?)^```/ms.exec(section)?.[1] ?? '').trim().split('\n')

/** What takes how long, and how many come meanwhile, is never the same. */
function withoutTimes(line: string): string {
  return line.replace(/(retryInMs|durationMs|decisions|units): [1-9]\d*/g, '$1: …')
}

it('the README shows what is told while Redis is frozen for two seconds, and five requests come', async () => {
  const server = await startRedis()
  const client = new Redis(server.url)
  const told: ResilienceEvent[] = []
  const limiter = createLimiter({
    store: redisStore(client),
    name: 'p',
    limit: 10,
    window: '1m',
    onStoreError: () => undefined,
    onResilience: (event) => told.push(event),
  })
  await limiter.consume('somebody')
  server.pause()
  for (let i = 0; i < 5; i += 1) expect((await limiter.consume('k')).allowed).toBe(true)
  server.resume()
  await until('all traffic is back', async () => {
    await limiter.peek('nobody')
    return told.at(-1)?.type === 'fallback-left'
  })
  expect((await limiter.peek('k')).outcomes[0]?.remaining).toBe(5)
  const lines = told.map((event) => inspect(event, { breakLength: 120 })).map(withoutTimes)
  for (const line of shown) {
    const place = lines.indexOf(withoutTimes(line))
    expect(lines, line).toContain(withoutTimes(line))
    lines.splice(0, place + 1)
  }
  client.disconnect()
  await server.stop()
})
