import type { Browser } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { until } from '../../support/until.ts'
import { openPage, show, views } from './browser.ts'
import { startLimitedApi, startProxy } from './limited-api.ts'
import { usePage } from './page-suite.ts'

const suite = usePage()
const { text } = suite

describe('the page', { timeout: 60_000 }, () => {
  it('says that it is offline, shows what it knew, and comes back', async () => {
    const { api, watched } = suite
    await text('Limited in the last two minutes')
    await api.leave()
    await text('Offline.')
    await text('Limited in the last two minutes')
    await api.comeBack()
    await watched.page.getByText('Offline.').waitFor({ state: 'detached' })
  }, 60_000)

  it.each([
    [401, 'Your session ended.'],
    [403, 'You may not see this page.'],
    [429, 'Too many requests came from here.'],
    [302, 'Your session ended.'],
  ])('stops asking after %d, and says how to go on', async (status, words) => {
    const { page, asked } = suite.watched
    await text('Limited in the last two minutes')
    await page.clock.install()
    await page.route('**/api/v1/**', (route) => {
      return route.fulfill({ status, headers: { Location: 'http://login.invalid/' } })
    })
    await text(words)
    await text('Limited in the last two minutes')
    const { length } = asked
    await page.clock.runFor(60_000)
    await show(page, 'Audit')
    expect(asked.slice(length)).toEqual([])
    expect(await page.getByRole('button', { name: 'Sign in again' }).count()).toBe(1)
    await page.unroute('**/api/v1/**')
    await page.getByRole('button', { name: 'Sign in again' }).click()
    await page.getByRole('heading', { name: 'Audit', level: 1 }).waitFor()
  })

  it('asks nothing in a hidden tab, and asks for changes only', async () => {
    const { page, calls, asked } = suite.watched
    await until('something has not changed', () => calls.includes('GET policies 304'))
    await page.clock.install()
    await page.reload()
    await text('Limited in the last two minutes')
    await page.evaluate(`(${setHidden})(true)`)
    const { length } = asked
    await page.clock.runFor(60_000)
    expect(asked.slice(length)).toEqual([])
    await page.evaluate(`(${setHidden})(false)`)
    await until('it asks again', () => asked.length > length)
  }, 60_000)

  it.each(['/', '/admin/limits'])('stands under %s', async (path) => {
    await using other = await startLimitedApi(suite.redis.url, path)
    await works(suite.browser, other.page)
  })

  it('stands behind a proxy that takes a part of the path away, with or without a slash', async () => {
    await using proxy = await startProxy(suite.api.origin, '/tools')
    await works(suite.browser, `${proxy.url}tools/limits/`)
    await works(suite.browser, `${proxy.url}tools/limits`)
  })
})

const setHidden = `(hidden) => {
  Object.defineProperty(document, 'hidden', { configurable: true, get: () => hidden })
  document.dispatchEvent(new Event('visibilitychange'))
}`

/** Opens the page at an address, and each of its views. */
async function works(browser: Browser, url: string) {
  const { page, faults } = await openPage(browser, url)
  await page.getByText('Limited in the last two minutes').waitFor()
  for (const name of views) await show(page, name)
  await page.close()
  expect(faults).toEqual([])
}
