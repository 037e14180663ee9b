import { readFileSync } from 'node:fs'
import { Agent, createServer, request } from 'node:http'
import type { Decision } from '@sluice/core'
import { rateLimit } from '@sluice/express'
import { openPolicies } from '@sluice/policies'
import express from 'express'
import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { stringify } from 'yaml'
import { runningOn } from '../adapters/drivers/driver.ts'
import { scaled } from '../support/scale.ts'
import { runSluice } from './run-sluice.ts'
import { testFiles } from './test-files.ts'

const { at, write } = testFiles('replay')
afterEach(() => vi.useRealTimers())

/** All times are multiples of it, and so are the times at which policies change their minds. */
const gridMs = 50
const begin = Date.parse('2026-11-21T10:00:00Z')

interface Entry {
  readonly t: number
  readonly ip: string
  readonly m: string
  readonly p: string
  readonly s: number
  readonly d: number
}

const entries = fc.array(
  fc.record({
    t: fc.integer({ min: 0, max: 60 }).map((steps) => begin + steps * gridMs),
    ip: fc.constantFrom('192.0.2.1', '192.0.2.2', '2001:db8::1', '2001:db8::2'),
    m: fc.constantFrom('GET', 'GET', 'POST', 'HEAD'),
    p: fc.constantFrom('/', '/login', '/users/1', '/users/2', '/free'),
    s: fc.constantFrom(200, 200, 401, 500),
    d: fc.integer({ min: 0, max: 12 }).map((steps) => steps * gridMs),
  }),
  { minLength: 1, maxLength: 60 },
)

const unit = { window: '1s' }
const alone = (policy: object) => ({ policies: [{ name: 'a', ...policy }] })
/** Lists of policies: every algorithm, alone and beside others. */
const files: Readonly<Record<string, object>> = {
  'sliding-log': alone({ limit: 3, ...unit }),
  'sliding-counter': alone({ algorithm: 'sliding-counter', limit: 4, ...unit }),
  'fixed-window': alone({ algorithm: 'fixed-window', limit: 3, align: 'clock', ...unit }),
  'token-bucket': alone({ algorithm: 'token-bucket', limit: 2, burst: 4, ...unit }),
  'leaky-bucket': {
    ...alone({ algorithm: 'leaky-bucket', limit: 4, queue: 3, ...unit }),
    maxWaiting: 3,
  },
  concurrency: alone({ algorithm: 'concurrency', limit: 2, lease: '300ms' }),
  'several, with routes, keys, costs and a penalty': {
    key: 'ip',
    policies: [
      { name: 'burst', limit: 2, window: '200ms' },
      { name: 'sustained', limit: 6, ...unit, refundWhen: { by: 'failed' } },
      { name: 'everybody', limit: 12, ...unit, key: 'method' },
      { name: 'trial', limit: 2, ...unit, mode: 'shadow' },
    ],
    routes: {
      '/free': false,
      'POST /login': { policies: [{ name: 'login', limit: 1, ...unit }], combine: 'add' },
      'GET /users/:id': { policies: ['sustained', { name: 'user', limit: 2, ...unit, cost: 2 }] },
    },
    penalty: { after: 4, within: '2s', for: '500ms' },
  },
  'requests in flight beside quotas': {
    policies: [
      { name: 'flight', limit: 1, algorithm: 'concurrency', lease: '300ms' },
      { name: 'quota', limit: 5, ...unit, algorithm: 'token-bucket' },
    ],
  },
}

describe('a replay decides as Express over HTTP', () => {
  it.each(Object.keys(files))('%s', { timeout: 120_000 }, async (name) => {
    const policyFile = write('sluice.yaml', stringify(files[name]))
    const property = fc.asyncProperty(entries, async (unsorted) => {
      const log = unsorted.toSorted((one, other) => one.t - other.t)
      expect(await replayed(policyFile, log)).toEqual(await overHttp(policyFile, log))
    })
    await fc.assert(property, { numRuns: scaled(4, 40) })
  })
})

async function replayed(policyFile: string, log: readonly Entry[]): Promise<readonly unknown[]> {
  const file = write('access.log', log.map((entry) => JSON.stringify(entry)).join('\n'))
  const decisions = at('decisions.jsonl')
  const { exitCode, stderr } = await runSluice([
    ...['simulate', file, '-p', policyFile, '--format', 'json', '--time', 'start'],
    ...['--fields', 'time=t,ip=ip,method=m,path=p,status=s,duration=d'],
    ...['--key', 'method=field:m', '--value', 'failed=status:500'],
    ...['--decisions', decisions, '--force'],
  ])
  expect([exitCode, stderr]).toEqual([0, ''])
  const lines = readFileSync(decisions, 'utf8').trimEnd().split('\n')
  return lines.map((line) => {
    const { result, outcomes, shadow } = JSON.parse(line)
    return { result, outcomes, ...(shadow && { shadow }) }
  })
}

type Outcomes = Decision['outcomes']

/** The same requests, sent at the same times by a clock that stands still between them. */
async function overHttp(policyFile: string, log: readonly Entry[]): Promise<readonly unknown[]> {
  const toFake = ['Date', 'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] as const
  vi.useFakeTimers({ now: begin, toFake: [...toFake] })
  const told: { last: { outcomes?: Outcomes; shadow?: Outcomes } } = { last: {} }
  const policies = await openPolicies({ file: policyFile })
  const limit = rateLimit({
    policies,
    keys: { method: ({ method }) => method },
    values: { failed: (_, { status }) => status === 500 },
    observers: {
      onDecision: ({ decision }) => {
        told.last.outcomes = decision.outcomes
      },
      onShadow: ({ outcomes }) => {
        told.last.shadow = outcomes
      },
    },
  })
  await policies.close()
  const open = { responses: 0 }
  const decided: { resolve: (isDenied: boolean) => void } = { resolve: () => undefined }
  const app = express().set('trust proxy', true)
  app.use((received, response, next) => {
    // The memory store answers at once: the request has gone on, is held, or is answered.
    limit(received, response, next)
    decided.resolve(response.headersSent)
  })
  app.use((answered, response) => {
    setTimeout(
      () => {
        open.responses += 1
        response.once('close', () => {
          open.responses -= 1
        })
        response.status(Number(answered.get('x-status'))).end()
      },
      Number(answered.get('x-duration')),
    )
  })
  const server = await runningOn(createServer(app).listen(0, '127.0.0.1'))
  const agent = new Agent({ keepAlive: true })
  const results: unknown[] = []
  for (const entry of log) {
    while (Date.now() < entry.t) {
      await vi.advanceTimersByTimeAsync(gridMs)
      while (open.responses > 0) await turn()
      await turn()
    }
    // An end that is due at once is one that comes before the next request.
    await vi.advanceTimersByTimeAsync(0)
    while (open.responses > 0) await turn()
    told.last = {}
    const isDenied = await new Promise<boolean>((resolve) => {
      decided.resolve = resolve
      send(entry, server.port, agent)
    })
    const { outcomes, shadow } = told.last
    const result = isDenied ? 'denied' : outcomes ? 'allowed' : 'skipped'
    results.push({
      result,
      outcomes: outcomes?.map(shown) ?? [],
      ...(shadow && { shadow: shadow.map(shown) }),
    })
  }
  await vi.advanceTimersByTimeAsync(60_000)
  vi.useRealTimers()
  agent.destroy()
  await server.close()
  return results
}

function shown({ policy, allowed, remaining, retryAfterMs, delayMs }: Outcomes[number]): object {
  return {
    ...{ policy: policy.name, allowed, remaining, delayMs },
    retryAfterMs: Number.isFinite(retryAfterMs) ? retryAfterMs : null,
  }
}

function send({ ip, m: method, p: path, s, d }: Entry, port: number, agent: Agent): void {
  const headers = { 'x-forwarded-for': ip, 'x-status': s, 'x-duration': d }
  const sent = request({ host: '127.0.0.1', port, method, path, headers, agent })
  sent.on('response', (response) => response.resume()).on('error', () => undefined)
  sent.end()
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
