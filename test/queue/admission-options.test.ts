import { memoryStore } from '@sluice/core'
import { ip, rateLimit } from '@sluice/express'
import {
  type AdmissionOptions,
  createAdmission,
  createQueue,
  memoryBroker,
  type Queue,
  type QueueOptions,
  type StatusMonitorOptions,
  statusMonitor,
} from '@sluice/queue'
import { describe, expect, it } from 'vitest'
import { pageRequest } from '../metrics/scrape.ts'

function makeQueue(options: Partial<QueueOptions> = {}): Queue {
  return createQueue({ broker: memoryBroker(), identity: ip(), ...options })
}

describe('the options of an admission', () => {
  function make(options: object = {}) {
    return createAdmission({ queue: makeQueue(), monitor: '/jobs', ...options } as AdmissionOptions)
  }

  it.each([
    [{ queue: undefined }, /^queue must be the result of createQueue/],
    [{ queue: memoryBroker() }, /^queue must be the result of createQueue/],
    [{ monitor: undefined }, /^monitor must be a path such as '\/jobs', or a URL, but is undef/],
    [{ monitor: 'jobs' }, /^monitor must be a path/],
    [{ monitor: '/jobs\r\nX: 1' }, /^monitor must be a path/],
    [{ monitor: 'ftp://example.com' }, /^monitor must be a path/],
    [{ admit: 'sometimes' }, /^admit must be one of 'always', 'overflow', 'preferred'/],
    [{ soft: ['a'] }, /^soft must be left out unless admit is 'overflow'/],
    [{ admit: 'overflow', soft: 'a' }, /^soft must be an array of names/],
    [{ admit: 'overflow', soft: [''] }, /^soft must be an array of names/],
    [{ headers: 'cookie' }, /^headers must be an array of names/],
    [{ headers: [7] }, /^headers must be an array of names/],
    [{ maxBodyBytes: -1 }, /^maxBodyBytes must be a whole number from 0/],
    [{ maxBodyBytes: 100_000_001 }, /^maxBodyBytes must be .* to 100000000/],
    [{ maxBodyBytes: 75_001 }, /^maxBodyBytes must be at most 75000, three quarters of/],
    [{ toJob: {} }, /^toJob must be a function of the envelope/],
    [{ toAnswer: {} }, /^toAnswer must be a function of the job/],
    [{ idempotency: true }, /^idempotency must be a plain object/],
    [{ idempotency: { requires: true } }, /there is no option 'requires'.*'required'/],
    [{ admit: 'overflow', soft: null }, /^soft must be an array of names, but is null/],
    [{ idempotency: { required: 1 } }, /^idempotency.required must be true or false/],
    [{ idempotency: { strict: 'yes' } }, /^idempotency.strict must be true or false/],
    [{ idempotency: { whileRunning: '409' } }, /^idempotency.whileRunning must be one of/],
    [{ maxWait: 'soon' }, /^maxWait must be/],
    [{ maxWait: 0 }, /^maxWait must be/],
    [{ maxHeld: -1 }, /^maxHeld must be a whole number from 0/],
    [{ path: '/jobs' }, /^createAdmission: there is no option 'path'/],
  ])('are refused where they cannot be meant: %j', (wrong, message) => {
    expect(() => make(wrong)).toThrow(message)
  })

  it.each([
    {},
    { monitor: 'https://example.com/jobs/' },
    { admit: 'overflow', soft: [] },
    { headers: [], maxBodyBytes: 0, maxWait: '100d', maxHeld: 0 },
    { maxBodyBytes: 75_000 },
    { maxBodyBytes: 10_000_000, toJob: () => null },
    { queue: makeQueue({ maxJobBytes: 1_000 }) },
    { queue: makeQueue({ maxJobBytes: 4_000_000 }), maxBodyBytes: 3_000_000 },
  ])('are taken where they can: %j', (options) => {
    expect(() => make(options)).not.toThrow()
  })

  it('name policies of the guard that they are given to, or of the routes in it', () => {
    const admission = make({ admit: 'overflow', soft: ['reports'] })
    const reports = { name: 'reports', limit: 1, window: '1s' } as const
    const others = { name: 'others', limit: 1, window: '1s' } as const
    const routed = { routes: { 'POST /reports': reports } }
    expect(() => rateLimit({ ...reports, admission })).not.toThrow()
    expect(() => rateLimit({ ...others, admission })).toThrow(/^soft must be .*'others'/)
    expect(() => rateLimit({ admission, ...routed })).not.toThrow()
    expect(() => rateLimit({ ...reports, admission, routes: { '/others': others } })).not.toThrow()
    expect(() =>
      rateLimit({ ...reports, routes: { '/others': { ...others, admission } } }),
    ).toThrow(/soft must be .*'others'/)
    const added = { ...others, admission, combine: 'add' } as const
    expect(() => rateLimit({ ...reports, routes: { '/others': added } })).not.toThrow()
  })
})

describe('the options of a status monitor', () => {
  it.each([
    [{ queue: undefined }, /^queue must be the result of createQueue/],
    [{ poll: { limit: 1 } }, /window/],
    [{ poll: { limit: -1, window: '1s' } }, /limit/],
    [{ poll: { limit: 1, windows: '1s' } }, /^poll: there is no option 'windows'/],
    [{ poll: 20 }, /^poll must be a plain object/],
    [{ store: {} }, /store/],
    [{ resultUrl: () => '/' }, /there is no option 'resultUrl'/],
    [{ path: '/jobs' }, /^statusMonitor: there is no option 'path'/],
  ])('are refused where they cannot be meant: %j', (wrong, message) => {
    const options = { queue: makeQueue(), ...wrong } as unknown as StatusMonitorOptions
    expect(() => statusMonitor(options)).toThrow(message)
  })

  it('have looks counted in one store for all monitors', async () => {
    const store = memoryStore()
    const poll = { limit: 2, window: '1m' } as const
    const queue = makeQueue()
    const look = async () => {
      const path = '/3f0c2b9e-6d0b-4a34-9a55-6c0f8f6c2a11'
      const request = pageRequest({ path, ip: '192.0.2.1', header: () => undefined })
      return (await statusMonitor({ queue, store, poll })(request))?.status
    }
    expect([await look(), await look(), await look()]).toEqual([404, 404, 429])
  })
})
