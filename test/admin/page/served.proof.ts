import type { Browser } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { serve } from '../../support/serve.ts'
import { until } from '../../support/until.ts'
import { openPage, show, views } from './browser.ts'
import { startLimitedApi, startProxy } from './limited-api.ts'
import { usePage } from './page-suite.ts'

const suite = usePage()
const { text } = suite

describe('the page', { timeout: 60_000 }, () => {
  it('reports that it is offline, shows the last data, and recovers', async () => {
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
  ])('stops polling after %d, and says how to continue', async (status, words) => {
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

  it('does not poll in a hidden tab, and requests only changes', async () => {
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

  it.each(['/', '/admin/limits'])('can be mounted under %s', async (path) => {
    await using other = await startLimitedApi(suite.redis.url, path)
    await works(suite.browser, other.page)
  })

  it('works behind a proxy that strips part of the path, with or without a slash', async () => {
    await using proxy = await startProxy(suite.api.origin, '/tools')
    await works(suite.browser, `${proxy.url}tools/limits/`)
    await works(suite.browser, `${proxy.url}tools/limits`)
  })

  it('ignores pages of other origins', async () => {
    const { api, browser } = suite
    await using site = await serve((_request, response) => {
      response.setHeader('Content-Type', 'text/html').end('<!doctype html><title>another</title>')
    })
    const page = await browser.newPage()
    await page.goto(site.url.replace('127.0.0.1', 'localhost'))
    await page.evaluate(`(${attack})(${JSON.stringify(`${api.page}api/v1/policies/kill`)})`)
    await page.close()
    expect((await api.policies.status()).kill).toBe('none')
    expect((await api.policies.history()).filter(({ kind }) => kind === 'kill')).toEqual([])
    const frame = await browser.newPage()
    await frame.goto(site.url)
    const isShown = await frame.evaluate(`(${isFramed})(${JSON.stringify(api.page)})`)
    await frame.close()
    expect(isShown).toBe(false)
  }, 60_000)
})

const setHidden = `(hidden) => {
  Object.defineProperty(document, 'hidden', { configurable: true, get: () => hidden })
  document.dispatchEvent(new Event('visibilitychange'))
}`

/** Tries what a page of another site can do: with the header, without a preflight, and by a form. */
const attack = `async (target) => {
  const body = JSON.stringify({ kill: 'off', reason: 'an attack' })
  const headers = { 'Content-Type': 'application/json', 'X-Sluice-Admin': '1', 'If-Match': '*' }
  const credentials = 'include'
  await fetch(target, { method: 'POST', body, headers, credentials }).catch(() => {})
  await fetch(target, { method: 'POST', body, mode: 'no-cors', credentials }).catch(() => {})
  const form = document.createElement('form')
  const frame = document.createElement('iframe')
  frame.name = 'hidden'
  Object.assign(form, { method: 'POST', action: target, target: 'hidden', enctype: 'text/plain' })
  const input = document.createElement('input')
  Object.assign(input, { name: body.slice(0, -1) + ',"x":"', value: '"}' })
  form.append(input)
  document.body.append(frame, form)
  await new Promise((resolve) => {
    frame.addEventListener('load', resolve)
    form.submit()
  })
}`

const isFramed = `async (url) => {
  const frame = document.createElement('iframe')
  frame.src = url
  const loaded = new Promise((resolve) => frame.addEventListener('load', resolve))
  document.body.append(frame)
  await loaded
  // A frame that was refused shows a page of the browser; what is of another origin cannot be read either way.
  return performance.getEntriesByName(url).some(({ responseStatus }) => responseStatus === 200)
}`

type Shown = readonly (typeof views)[number][]

/** Opens the page at an address, and views of it. */
async function works(browser: Browser, url: string, shown: Shown = views) {
  const { page, faults } = await openPage(browser, url)
  await page.getByText('Limited in the last two minutes').waitFor()
  for (const name of shown) await show(page, name)
  await page.close()
  expect(faults).toEqual([])
}
