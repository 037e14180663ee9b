import { existsSync, readFileSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import { dirname, extname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hindrances, openPage, startBrowser } from '../admin/page/browser.ts'
import { type Served, serve } from '../support/serve.ts'
import { filesUnder, readText, root } from '../support/workspace.ts'

/** The site that `npm run docs` has built; `.ci/run` builds it before the proofs. */
const site = `${root}docs/.vitepress/dist`
const { homepage } = JSON.parse(readText('package.json'))
const base = new URL(homepage).pathname
const types: { readonly [extension: string]: string } = {
  ...{ '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' },
  ...{ '.svg': 'image/svg+xml', '.png': 'image/png', '.woff2': 'font/woff2' },
}
/** SCREENSHOTS=<folder> keeps pictures of more pages. */
const kept = process.env.SCREENSHOTS
const pages = [
  ...['', 'playground', 'comparison', 'tasks', 'api/@sluice/core'],
  ...(kept ? ['start/', 'recipes', 'options', 'algorithms', 'faq', 'layouts', 'api/'] : []),
]

describe.runIf(existsSync(site))('the site', () => {
  const handler: RequestListener = (request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://site')
    const file = `${pathname.slice(base.length - 1)}${pathname.endsWith('/') ? 'index.html' : ''}`
    const path = site + decodeURIComponent(extname(file) === '' ? `${file}.html` : file)
    if (!pathname.startsWith(base) || !existsSync(path)) return response.writeHead(404).end()
    const type = types[extname(path)] ?? 'application/octet-stream'
    return response.writeHead(200, { 'content-type': type }).end(readFileSync(path))
  }
  let server: Served
  let url = ''
  let browser: Awaited<ReturnType<typeof startBrowser>>

  beforeAll(async () => {
    server = await serve(handler)
    url = server.url + base.slice(1)
    browser = await startBrowser()
  })
  afterAll(async () => {
    await browser?.close()
    await server.close()
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

  it.each([
    ['', 'light'],
    ['playground', 'light'],
    ['playground', 'dark'],
  ] as const)('has an accessible playground: /%s, %s', async (path, scheme) => {
    if (!browser) return
    const { page } = await openPage(browser, url + path, { scheme, width: 390 })
    await page.getByRole('button', { name: 'Play' }).waitFor()
    expect(await hindrances(page, '.playground')).toEqual([])
    await page.close()
  })

  it('has Markdown pages whose links lead somewhere', () => {
    const markdown = filesUnder('docs/.vitepress/dist', '.md')
    expect(markdown).toContain('docs/.vitepress/dist/index.md')
    const dead = markdown.flatMap((file) =>
      [...readFileSync(root + file, 'utf8').matchAll(/\]\((?!\w+:|[/#])([^\s)#]+\.md)/g)]
        .map(([, href = '']) => join(dirname(file), href))
        .filter((target) => !existsSync(root + target))
        .map((target) => `${file}: ${target}`),
    )
    expect(dead).toEqual([])
  })

  it('replays an attack by keyboard, and a link shows the same again', async () => {
    if (!browser) return
    const { page } = await openPage(browser, `${url}playground`)
    const [attack, sluice] = [
      page.getByText('At most 7 in any'),
      page.getByText('At most 4 in any'),
    ]
    await attack.waitFor()
    await sluice.waitFor()
    const request = page.getByRole('slider', { name: 'Request' })
    await request.press('End')
    await page.getByText('HTTP/1.1 429').waitFor()
    await request.press('Home')
    expect(await page.getByText('HTTP/1.1 200').count()).toBe(2)
    await page.getByRole('spinbutton', { name: 'Limit' }).first().fill('2')
    await page.getByRole('button', { name: 'Copy link' }).click()
    const link = page.url()
    expect(link).toContain('policy=fixed-window%7E2%7E10s')
    await page.close()
    const again = await openPage(browser, link)
    await again.page.getByText('At most 3 in any').waitFor()
    await again.page.close()
  })

  it('draws 10,000 requests of a log without a pause', async () => {
    if (!browser) return
    const { page } = await openPage(browser, `${url}playground`)
    const line = (second: number) =>
      `192.0.2.${second % 50} - - [20/Nov/2026:01:${String(Math.floor(second / 60) % 60).padStart(2, '0')}:${String(second % 60).padStart(2, '0')} +0000] "GET / HTTP/1.1" 200 1 "-" "-"`
    const log = Array.from({ length: 10_000 }, (_, index) => line(Math.floor(index / 3))).join('\n')
    await page
      .getByLabel('Access log')
      .setInputFiles({ name: 'access.log', mimeType: 'text/plain', buffer: Buffer.from(log) })
    await page.getByText('request 10000 of 10000').waitFor()
    await page.getByRole('button', { name: 'Play' }).click()
    const frames = await page.evaluate<number>(`new Promise((resolve) => {
      let frames = 0
      const startMs = performance.now()
      const step = (nowMs) => {
        frames += 1
        if (nowMs - startMs < 2_000) requestAnimationFrame(step)
        else resolve(frames / (nowMs - startMs) * 1_000)
      }
      requestAnimationFrame(step)
    })`)
    if (kept) console.log(`${Math.round(frames)} frames a second`)
    // Other tests share the machine.
    expect(frames).toBeGreaterThan(20)
    await page.close()
  })

  it('shows a framework in all tabs of a page as soon as one is chosen', async () => {
    if (!browser) return
    const { page } = await openPage(browser, `${url}tasks`, { width: 390 })
    const tab = page.getByText('Koa', { exact: true }).nth(3)
    await tab.scrollIntoViewIfNeeded()
    const before = await tab.boundingBox()
    await tab.click()
    expect((await tab.boundingBox())?.y).toBeCloseTo(before?.y ?? 0, -1)
    expect(await page.getByText("from '@sluice/koa'").filter({ visible: true }).count()).toBe(6)
    expect(await page.getByText("from '@sluice/express'").filter({ visible: true }).count()).toBe(0)
    await page.close()
  })

  it('has every page as Markdown too, listed in llms.txt', () => {
    const list = readFileSync(`${site}/llms.txt`, 'utf8')
    const pages = filesUnder('docs', '.md').filter((page) => !/^docs\/(api|index)/.test(page))
    for (const page of pages.map((path) => path.replace(/^docs\/|(\/index)?\.md$/g, ''))) {
      expect(list).toContain(`(${homepage}${page}.md)`)
      expect(readFileSync(`${site}/${page}.md`, 'utf8')).toMatch(/^# /m)
    }
    const tabs = readFileSync(`${site}/tasks.md`, 'utf8').match(/^```ts \[\w+\]$/gm)
    expect(tabs).toHaveLength(36)
  })

  it('finds a page by a word', async () => {
    if (!browser) return
    const { page } = await openPage(browser, url)
    await page.getByRole('button', { name: 'Search' }).first().click()
    await page.getByRole('searchbox').fill('deadlineMs')
    await page.getByRole('option').first().waitFor()
    expect(await page.getByRole('option').count()).toBeGreaterThan(2)
    // A guide stands above the pages that are written from the types.
    const first = await page.locator('#localsearch-list a').first().getAttribute('href')
    expect(first).not.toMatch(/\/api\//)
    await page.close()
  })
})
