import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { extname } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openPage, startBrowser } from '../admin/page/browser.ts'
import { root } from '../support/workspace.ts'

/** The site that `npm run docs` has built; `.ci/run` builds it before the proofs. */
const site = `${root}docs/.vitepress/dist`
const types: { readonly [extension: string]: string } = {
  ...{ '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' },
  ...{ '.svg': 'image/svg+xml', '.png': 'image/png', '.woff2': 'font/woff2' },
}
/** SCREENSHOTS=<folder> keeps pictures of more pages. */
const kept = process.env.SCREENSHOTS
const pages = [
  ...['', 'comparison', 'api/@sluice/core'],
  ...(kept ? ['start/', 'recipes', 'options', 'algorithms', 'faq', 'layouts', 'api/'] : []),
]

describe.runIf(existsSync(site))('the site', () => {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://site')
    const file = pathname.endsWith('/') ? `${pathname}index.html` : pathname
    const path = site + decodeURIComponent(extname(file) === '' ? `${file}.html` : file)
    if (!existsSync(path)) return response.writeHead(404).end()
    const type = types[extname(path)] ?? 'application/octet-stream'
    return response.writeHead(200, { 'content-type': type }).end(readFileSync(path))
  })
  let url = ''
  let browser: Awaited<ReturnType<typeof startBrowser>>

  beforeAll(async () => {
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const address = server.address()
    url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/`
    browser = await startBrowser()
  })
  afterAll(async () => {
    await browser?.close()
    server.close()
  })

  it.each([
    [1280, 'light'],
    [1280, 'dark'],
    [390, 'light'],
    [390, 'dark'],
  ] as const)('fits a window of %i pixels, %s, and asks no other server', async (width, scheme) => {
    if (!browser) return
    for (const path of pages) {
      const { page, faults } = await openPage(browser, url + path, { width, scheme })
      const tooWide = await page.evaluate(
        'document.documentElement.scrollWidth - document.documentElement.clientWidth',
      )
      expect({ path, tooWide, faults }).toEqual({ path, tooWide: 0, faults: [] })
      const name = `${path.replaceAll(/\W/g, '') || 'index'}-${width}-${scheme}.png`
      if (kept) await page.screenshot({ path: `${kept}/${name}`, fullPage: true })
      await page.close()
    }
  })

  it('has every page as Markdown too, listed in llms.txt', () => {
    const list = readFileSync(`${site}/llms.txt`, 'utf8')
    for (const page of ['start/redis', 'limits', 'options', 'reliability']) {
      expect(list).toContain(`(/${page}.md)`)
      expect(readFileSync(`${site}/${page}.md`, 'utf8')).toMatch(/^# /m)
    }
  })

  it('finds a page by a word', async () => {
    if (!browser) return
    const { page } = await openPage(browser, url)
    await page.getByRole('button', { name: 'Search' }).first().click()
    await page.getByRole('searchbox').fill('deadlineMs')
    await page.getByRole('option').first().waitFor()
    expect(await page.getByRole('option').count()).toBeGreaterThan(2)
    await page.close()
  })
})
