import { expect, it } from 'vitest'
import { startInTest } from './start-example.ts'

it('examples/regions shows a region that is cut off, and comes back', async () => {
  const example = startInTest('regions', { SECONDS: '9' })
  const text = await example.printed(/fullest window of both: \d+ of 100/)
  expect(text).toContain('us is cut off from the global Redis: it keeps its share')
  expect(text).toContain('us is back: it borrows again')
  const fullest = Number(/both: (\d+) of/.exec(text)?.[1])
  // More than the guaranteed shares, and never more than the limit.
  expect(fullest).toBeGreaterThan(30)
  expect(fullest).toBeLessThanOrEqual(100)
  expect((await example.ended()).code).toBe(0)
})
