import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RunningExample, startExample } from '../examples/start-example.ts'
import { findOrInstallChrome } from '../support/chrome-binary.ts'
import { addNote } from '../support/run-notes.ts'
import { bundleForPages } from './bundle.ts'

/** What the page reports. */
interface Report {
  readonly answers: { status: number; policy: string | null; atMs: number }[]
  readonly waits: {
    reason: string
    waitMs: number
    policies: string[]
    retryAfter: string | null
  }[]
}

/** Calls the API from the page: the first two are within its limit of 10 units a second, the third is not. */
const visit = `async (url) => {
  const waits = []
  const fetch = sluice.createFetch({
    onWait: ({ reason, waitMs, policies, response }) =>
      waits.push({ reason, waitMs, policies, retryAfter: response.headers.get('Retry-After') }),
  })
  const answers = []
  for (let call = 0; call < 3; call++) {
    const response = await fetch(url)
    answers.push({
      status: response.status,
      policy: response.headers.get('RateLimit-Policy'),
      atMs: performance.now(),
    })
  }
  return { answers, waits }
}`

describe('a page of another origin', () => {
  let browser: Browser | undefined
  let example: RunningExample
  let site: Server
  let page: Page
  let api: string

  beforeAll(async () => {
    const chrome = findOrInstallChrome()
    if ('problem' in chrome) {
      addNote(
        `NOT TRIED in a browser, since there is no Chrome: set CHROME_BIN (${chrome.problem})`,
      )
      return
    }
    example = startExample('express', { PORT: '0' })
    const port = /listening on (\d+)/.exec(await example.printed(/listening on \d+/))?.[1]
    api = `http://127.0.0.1:${port}/api/search`
    site = await serve(`<!doctype html><script src="/client.js"></script>`, await bundleForPages())
    browser = await chromium.launch({ executablePath: chrome.path, args: ['--no-sandbox'] })
    page = await browser.newPage()
    await page.goto(`http://localhost:${portOf(site)}/`)
  }, 400_000)

  afterAll(async () => {
    if (browser === undefined) return
    await browser.close()
    await example.stop()
    site.close()
    site.closeAllConnections()
  })

  it('reads the headers through CORS, and waits as it is told', async (test) => {
    test.skip(browser === undefined, 'there is no Chrome')
    const { answers, waits }: Report = await page.evaluate(`(${visit})(${JSON.stringify(api)})`)
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
    expect(answers[0]?.policy).toContain('"burst";q=10;w=1')
    expect(waits).toMatchObject([{ reason: 'told', policies: ['burst'], retryAfter: '1' }])
    const [, second, third] = answers.map(({ atMs }) => atMs)
    expect((third ?? 0) - (second ?? 0)).toBeGreaterThan(1000)
  })
})

async function serve(html: string, script: Uint8Array): Promise<Server> {
  const server = createServer((request, response) => {
    const isScript = request.url === '/client.js'
    response.setHeader('Content-Type', isScript ? 'text/javascript' : 'text/html')
    response.end(isScript ? script : html)
  })
  server.listen(0)
  await once(server, 'listening')
  return server
}

function portOf(server: Server): number {
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('the server has no port')
  return address.port
}
