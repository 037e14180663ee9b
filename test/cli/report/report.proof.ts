import { pathToFileURL } from 'node:url'
import { htmlReport } from '@sluice/cli'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { hindrances, openPage, startBrowser } from '../../admin/page/browser.ts'
import { testFiles } from '../test-files.ts'
import { hostile, sampleReport } from './sample-report.ts'

const { write } = testFiles('report')
const url = pathToFileURL(write('report.html', htmlReport(sampleReport()))).href
let browser: Browser | undefined

beforeAll(async () => {
  browser = await startBrowser()
}, 400_000)

afterAll(() => browser?.close())

beforeEach((test) => {
  if (!browser) test.skip('there is no Chrome')
})

async function open(width = 1_280, scheme: 'light' | 'dark' = 'light') {
  if (!browser) throw new Error('there is no Chrome')
  const watched = await openPage(browser, url, { width, scheme })
  const { page } = watched
  await page.getByRole('status').filter({ hasText: 'would catch' }).waitFor()
  return watched
}

describe('the report in a browser', { timeout: 60_000 }, () => {
  it('moves the limit by a slider, and tells who would be caught', async () => {
    const { page, faults, asked } = await open()
    const verdict = page.locator('.verdict')
    const first = 'A limit of 600 in 1m would catch 400 of 1,000 clients (40%).'
    expect(await verdict.textContent()).toBe(first)
    const caught = page.getByRole('table', { name: 'Clients that would be caught' })
    expect(await caught.getByRole('row').count()).toBe(101)
    expect(await caught.getByRole('row').nth(1).textContent()).toContain(hostile)

    const slider = page.getByRole('slider')
    await slider.focus()
    await page.keyboard.press('End')
    expect(await verdict.textContent()).toContain('would catch 0 of 1,000')
    expect(await caught.count()).toBe(0)
    await page.keyboard.press('Home')
    const lowest = 'A limit of 1 in 1m would catch 999 of 1,000 clients (99.9%).'
    expect(await verdict.textContent()).toBe(lowest)
    const box = await slider.boundingBox()
    if (!box) throw new Error('the slider is not shown')
    await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2)
    const middle = Number(await page.getByLabel('Limit', { exact: true }).inputValue())
    expect(middle).toBeGreaterThan(20)
    expect(middle).toBeLessThan(50)
    expect(await verdict.textContent()).toContain(`would catch ${1_000 - middle} of 1,000`)

    await page.getByLabel('Limit', { exact: true }).fill('990')
    expect(await verdict.textContent()).toContain('would catch 10 of 1,000 clients (1%)')
    expect(await caught.getByRole('row').count()).toBe(11)
    await page.getByLabel('requests in').selectOption({ label: '1s' })
    expect(await verdict.textContent()).toContain('in 1s would catch')
    expect(await page.locator('.chart svg').count()).toBe(1)

    expect(faults).toEqual([])
    expect(asked.filter((address) => !address.startsWith('data:'))).toEqual([url])
    await page.close()
  })

  it('shows hours, policies, routes and clients, of which one can be found', async () => {
    const { page, faults } = await open()
    const heat = page.getByRole('table', { name: 'Hours by denied requests' })
    expect(await heat.getByRole('row').count()).toBe(3)
    expect(await heat.locator('.cell').count()).toBe(40)
    await page.getByLabel('Colour by').selectOption({ label: 'requests' })
    await page.getByRole('table', { name: 'Hours by requests' }).waitFor()
    const clients = page.getByRole('table', { name: 'Clients that were refused' })
    expect(await clients.getByRole('row').count()).toBe(101)
    await page.getByRole('button', { name: 'Show more' }).click()
    expect(await clients.getByRole('row').count()).toBe(201)
    await page.getByLabel('Find a client').fill('192.0.2.777')
    expect(await clients.getByRole('row').count()).toBe(2)
    expect(await clients.textContent()).toContain('1m 1s')
    expect(await page.getByText('a cost of 1 was assumed').count()).toBe(1)
    expect(faults).toEqual([])
    await page.close()
  })

  it.each([
    [1_280, 'light'],
    [1_280, 'dark'],
    [390, 'light'],
    [390, 'dark'],
  ] as const)('is accessible at %i pixels, %s', async (width, scheme) => {
    const { page, faults } = await open(width, scheme)
    const spare = await page.evaluate('innerWidth - document.documentElement.scrollWidth')
    expect(spare).toBeGreaterThanOrEqual(0)
    const colour = await page.evaluate('getComputedStyle(document.body).backgroundColor')
    expect(colour).toBe(scheme === 'light' ? 'rgb(245, 247, 249)' : 'rgb(13, 18, 23)')
    expect(faults).toEqual([])
    // The rules look at colours and at structure: the other two pairs have the same.
    if ((width === 1_280) === (scheme === 'light')) expect(await hindrances(page)).toEqual([])
    await page.close()
  })
})
