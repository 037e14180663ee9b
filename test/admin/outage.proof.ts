import { redisStore } from '@sluice/redis'
import { expect } from 'vitest'
import { it } from '../support/redis-test.ts'
import { until } from '../support/until.ts'
import { startAdmin } from './admin-server.ts'
import { callNow, operations } from './operations.ts'

/** Reads that need no store, or know what to show without it. */
const readable = new Set([
  ...['session', 'live', 'traffic', 'fleet', 'top', 'near', 'policies', 'queues', 'deadLetters'],
  ...['export', 'diff', 'lookup'],
])

it('every operation is answered while Redis is frozen, none half done', async ({
  redis,
  client,
}) => {
  const started = await startAdmin({ store: redisStore(client) })
  const { act, call, look, visit, policies } = started
  for (let i = 0; i < 6; i += 1) await visit('ada')
  redis.pause()
  try {
    const answered = Object.entries(operations).map(async ([name, operation]) => {
      return [name, (await callNow(started, operation)).status] as const
    })
    const wanted = Object.keys(operations).map((name) => [name, readable.has(name) ? 200 : 503])
    expect(await Promise.all(answered)).toEqual(wanted)
    // Its name is found by its denials.
    expect((await look('ada')).body).toMatchObject({ isAway: true, key: { user: 'ada' } })
    for (const dryRun of [true, false]) {
      const { body } = await act('reset', { key: 'user ada', dryRun })
      expect(body.detail).toMatch(/not started|Nothing was started/)
    }
  } finally {
    redis.resume()
  }
  await until('the store answers again', async () => (await call('GET', 'audit')).status === 200)
  await until('the key has what it had', async () => {
    const { status, body } = await look('user ada')
    const used = status === 200 && body.policies.map((each: { used: number }) => each.used)
    return JSON.stringify(used) === '[5,0]'
  })
  await until('actions are done again', async () => {
    return (await act('block', { key: 'user ada', for: '1h' })).status === 200
  })
  // A change that Redis has read after all is one version, whole and with its record.
  await until('the newest version is in force', async () => {
    const versions = await policies.history()
    return versions.length <= 2 && policies.version === versions[0]?.id
  })
}, 60_000)
