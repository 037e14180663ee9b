import type { JobHandler } from '@sluice/queue'
import type { RequestHandler } from 'express'
import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { type RunningExample, startExample } from '../examples/start-example.ts'
import { findOrNote } from '../support/programs.ts'
import { type Served, serve } from '../support/serve.ts'
import { bundleForPages } from './bundle.ts'
import { jobApi } from './job-api.ts'

interface Report {
  readonly answers: { status: number; policy: string | null; atMs: number }[]
  readonly waits: {
    reason: string
    waitMs: number
    policies: string[]
    retryAfter: string | null
  }[]
}

/** Calls the API from the page until a call has to wait: the third, by a limit of 10 units a second, or a later one on a busy machine. */
const visit = `async (url) => {
  const waits = []
  const fetch = sluice.createFetch({
    observers: {
      onWait: ({ reason, waitMs, policies, response }) =>
        waits.push({ reason, waitMs, policies, retryAfter: response.headers.get('Retry-After') }),
    },
  })
  const answers = []
  for (let call = 0; call < 3 || (waits.length === 0 && call < 30); call++) {
    const response = await fetch(url)
    answers.push({
      status: response.status,
      policy: response.headers.get('RateLimit-Policy'),
      atMs: performance.now(),
    })
  }
  return { answers, waits }
}`

interface JobReport {
  readonly location: string | null
  /** The `Retry-After` of each answer that said "not done", as the page saw it. */
  readonly pending: (string | null)[]
  readonly result: unknown
}

/** Orders a report, which asks for a preflight, and waits for it. */
const visitJobs = `async (url) => {
  const headers = { 'X-API-Key': 'ada' }
  const order = { method: 'POST', headers: { ...headers, 'Content-Type': 'application/json' }, body: '{"page":7}' }
  const accepted = await sluice.createFetch()(url + 'reports', order)
  const pending = []
  const onPending = (response) => pending.push(response.headers.get('Retry-After'))
  const done = await sluice.waitFor(accepted, { headers, onPending })
  return { location: accepted.headers.get('Location'), pending, result: await done.json() }
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
    const { answers, waits }: Report = await page.evaluate(`(${visit})(${JSON.stringify(api)})`)
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
    expect(answers[0]?.policy).toContain('"burst";q=10;w=1')
    expect(waits).toMatchObject([{ reason: 'server', policies: ['burst'], retryAfter: '1' }])
    const [second, third] = answers.slice(-2).map(({ atMs }) => atMs)
    expect((third ?? 0) - (second ?? 0)).toBeGreaterThan(1000)
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
    const report: JobReport = await page.evaluate(`(${visitJobs})(${JSON.stringify(jobs.url)})`)
    expect(report.result).toMatchObject({ status: 'done', result: { body: { page: 7 } } })
    expect(report.pending).toEqual(report.pending.map(() => told))
    expect(report.pending.length).toBeGreaterThan(0)
    expect(report.location !== null).toBe(exposed !== '')
    expect(preflights).toEqual(expect.arrayContaining(['POST /repor', 'GET /jobs/']))
  })
})
