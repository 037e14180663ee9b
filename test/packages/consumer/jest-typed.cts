import { expect, test } from '@jest/globals'
import { createLimiter, type Decision, memoryStore } from '@sluice/core'

test('limits in a TypeScript test', async () => {
  const limiter = createLimiter({
    policies: [{ name: 'default', limit: 1, window: '1m' }],
    store: memoryStore(),
  })
  const first: Decision = await limiter.consume('user:42')
  expect(first.allowed).toBe(true)
  expect((await limiter.consume('user:42')).allowed).toBe(false)
})
