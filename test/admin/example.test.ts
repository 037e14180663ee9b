import { expect, it } from 'vitest'
import { until } from '../support/until.ts'
import { openExample } from './open-example.ts'

it('examples/admin serves the page, and has clients that are denied', async () => {
  const { page, live, login } = await openExample()
  expect(await page()).toContain('<!doctype html>')
  await until('a login is denied', async () => (await login('eve')) === 429)
  await until('it is counted', async () => (await live()).requests.denied > 0)
  await until('other clients come', async () => (await live()).requests.allowed > 20)
})
