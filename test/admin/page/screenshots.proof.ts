import { mkdir } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { startInTest } from '../../examples/start-example.ts'
import { startRedis } from '../../support/redis-server.ts'
import { root } from '../../support/workspace.ts'
import { confirm, openPage, show, startBrowser } from './browser.ts'

/** The pictures of the README and of docs/admin.md. */
const folder = `${root}docs/images`
/** Time (ms) in which the lines of the overview grow. */
const growMs = 75_000

// SCREENSHOTS=1 npm run test:proofs -- admin/page/screenshots
it.runIf(process.env.SCREENSHOTS)('the example is photographed', { timeout: 200_000 }, async () => {
  await using redis = await startRedis()
  const example = startInTest('admin', { PORT: '0', REDIS_URL: redis.url })
  const [url = ''] = /http:[^\s,]+/.exec(await example.printed(/Open http/)) ?? []
  const browser = await startBrowser()
  if (!browser) throw new Error('there is no Chrome')
  const { page, faults } = await openPage(browser, url)
  const picture = (name: string, fullPage = false) =>
    page.screenshot({ path: `${folder}/admin-${name}.png`, fullPage })
  await mkdir(folder, { recursive: true })
  await show(page, 'Policies')
  await page.getByRole('button', { name: 'Change login' }).click()
  await page.getByLabel('Limit', { exact: true }).fill('8')
  await page.getByText('policies.login.limit').waitFor()
  await confirm(page, 'Apply')
  await show(page, 'Overview')
  await page.waitForTimeout(growMs)
  await picture('overview', true)
  await page.emulateMedia({ colorScheme: 'dark' })
  await page.waitForTimeout(500)
  await picture('overview-dark', true)
  await page.emulateMedia({ colorScheme: 'light' })
  await show(page, 'Policies')
  await page.getByRole('button', { name: 'Change burst' }).click()
  await page.getByLabel('Limit', { exact: true }).fill('10')
  await page.getByText('policies.burst.limit').waitFor()
  await page.getByLabel('Reason').fill('a robot asks for everything')
  await page.waitForTimeout(500)
  await picture('change')
  await page.keyboard.press('Escape')
  await show(page, 'Keys')
  await page.getByLabel('Key', { exact: true }).fill('user mallory')
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Reset its count' }).waitFor()
  await picture('keys')
  await page.setViewportSize({ width: 360, height: 780 })
  await show(page, 'Overview')
  await page.waitForTimeout(500)
  await picture('narrow')
  await browser.close()
  expect(faults).toEqual([])
})
