import type { JobHandler } from '@sluice/queue'
import type { RequestHandler } from 'express'
import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { type RunningExample, startExample } from '../examples/start-example.ts'
import { findOrNote } from '../support/programs.ts'
import { type Served, serve } from '../support/serve.ts'
import { bundleForPages } from './bundle.ts'
import { jobApi } from './job-api.ts'

/** Calls the API from the page until a call has to wait: the third, by a limit of 10 units a second, or a later one on a busy machine. */
const visit = `async (url) => {
  const waits = []
  const fetch = sluice.createFetch({
    observers: {
      onWait: ({ reason, policies, response }) =>
        waits.push({ reason, policies, retryAfter: response.headers.get('Retry-After') }),
    },
  })
  const [statuses, policies, times] = [[], [], []]
  for (let call = 0; call < 3 || (waits.length === 0 && call < 30); call++) {
    const { status, headers } = await fetch(url)
    statuses.push(status)
    policies.push(headers.get('RateLimit-Policy'))
    times.push(performance.now())
  }
  const hasPaused = times.at(-1) - times.at(-2) > 1000
  return { statuses: [...new Set(statuses)], policy: policies[0], waits, hasPaused }
}`

/** Orders a report, which asks for a preflight, and waits for it. */
const visitJobs = `async (url) => {
  const headers = { 'X-API-Key': 'ada' }
  const order = { method: 'POST', headers: { ...headers, 'Content-Type': 'application/json' }, body: '{"page":7}' }
  const accepted = await sluice.createFetch()(url + 'reports', order)
  const told = new Set()
  const onPending = (response) => told.add(response.headers.get('Retry-After'))
  const done = await sluice.waitFor(accepted, { headers, onPending })
  return { location: accepted.headers.get('Location'), told: [...told], ...await done.json() }
}`

/** CORS as an application has it; notes what browsers asked before. */
function cors(exposed: string, preflights: string[]): RequestHandler {
  return (request, response, next) => {
    response.set('Access-Control-Allow-Origin', '*')
    response.set('Access-Control-Allow-Headers', 'Content-Type, X-API-Key')
    if (exposed) response.set('Access-Control-Expose-Headers', exposed)
    if (request.method !== 'OPTIONS') return next()
    preflights.push(`${request.get('Access-Control-Request-Method')} ${request.path.slice(0, 6)}`)
    response.sendStatus(204)
  }
}

describe('a page of another origin', () => {
  let browser: Browser | undefined
  let example: RunningExample
  let site: Served
  let page: Page
  let api: string

  beforeAll(async () => {
    const executablePath = findOrNote('chrome', 'the client in a browser')
    if (executablePath === undefined) return
    example = startExample('express', { PORT: '0' })
    const port = /listening on (\d+)/.exec(await example.printed(/listening on \d+/))?.[1]
    api = `http://127.0.0.1:${port}/api/search`
    const script = await bundleForPages()
    site = await serve((request, response) => {
      const isScript = request.url === '/client.js'
      response.setHeader('Content-Type', isScript ? 'text/javascript' : 'text/html')
      response.end(isScript ? script : `<!doctype html><script src="/client.js"></script>`)
    })
    browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
    page = await browser.newPage()
    await page.goto(site.url)
  }, 400_000)

  afterAll(async () => {
    if (browser === undefined) return
    await browser.close()
    await example.stop()
    await site.close()
  })

  it('reads the headers through CORS, and waits as it is told', async (test) => {
    test.skip(browser === undefined, 'there is no Chrome')
    expect(await page.evaluate(`(${visit})(${JSON.stringify(api)})`)).toEqual({
      ...{ statuses: [200], policy: expect.stringContaining('"burst";q=10;w=1'), hasPaused: true },
      waits: [{ reason: 'server', policies: ['burst'], retryAfter: '1' }],
    })
  })

  it.for([
    { how: 'as it is told, where it may see that', exposed: 'Location, Retry-After', told: '1' },
    { how: 'by what the bodies say, where no header is exposed', exposed: '', told: null },
  ])('waits for a job $how', async ({ exposed, told }, test) => {
    test.skip(browser === undefined, 'there is no Chrome')
    const preflights: string[] = []
    const handler: JobHandler = async ({ payload }) => {
      await new Promise((resolve) => setTimeout(resolve, 2700))
      return payload
    }
    const jobs = await jobApi({ handler, before: cors(exposed, preflights) })
    onTestFinished(jobs.close)
    const report = await page.evaluate(`(${visitJobs})(${JSON.stringify(jobs.url)})`)
    const location = exposed === '' ? null : expect.stringContaining('/jobs/')
    const done = { status: 'done', result: { body: { page: 7 } } }
    expect(report).toMatchObject({ location, told: [told], ...done })
    expect(preflights).toEqual(expect.arrayContaining(['POST /repor', 'GET /jobs/']))
  })
})
