import { expect, it, vi } from 'vitest'
import type { App, Behaviour } from '../adapter-conformance.ts'
import type { Question } from '../ask.ts'

/** The statuses of requests with these values of X-Forwarded-For, one after the other. */
async function statuses(app: App, values: readonly string[], question: Question = {}) {
  const found: number[] = []
  for (const value of values) {
    const headers = { 'x-forwarded-for': value }
    found.push((await app.ask('/', { ...question, headers })).status)
  }
  return found
}

const many = <T>(count: number, make: (index: number) => T) => Array.from(Array(count).keys(), make)
const two = { limit: 2, window: '1m' } as const

/** X-Forwarded-For: only the framework's own proxy settings say whom to believe. */
export const proxies: Behaviour = ({ driver, start, limited }) => {
  const proxied = () => start({ limits: [two], trustProxy: '127.0.0.1' })

  it('ignores the header where no proxy is trusted, and says once what to set', async () => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    const found = await statuses(
      await limited(two),
      many(20, (i) => `${i}.${i}.0.1`),
    )

    expect(found).toEqual([200, 200, ...Array(18).fill(429)])
    const warnings = warn.mock.calls.filter(([text]) => /trust ?proxy/i.test(String(text)))
    expect(warnings.length).toBeLessThanOrEqual(1)
  })

  it('believes a trusted proxy, and not what the client has put left of it', async () => {
    const app = await proxied()
    const spoofed = many(20, (i) => `10.${i}.0.1, 198.51.100.7`)

    expect(await statuses(app, spoofed)).toEqual([200, 200, ...Array(18).fill(429)])
    expect(await statuses(app, ['198.51.100.8'])).toEqual([200])
  })

  it.skipIf(driver.trustsAnyPeer)(
    'ignores the header from a peer that is not the proxy',
    async () => {
      const spoofed = many(5, (i) => `10.${i}.0.1`)
      const found = await statuses(await proxied(), spoofed, { from: '127.0.0.2' })
      expect(found).toEqual([200, 200, 429, 429, 429])
    },
  )

  it('gives all that a proxy forwards as no address one bucket, not one each', async () => {
    const found = await statuses(
      await proxied(),
      many(5, (i) => `unknown-${i}`),
    )
    expect(found).toEqual([200, 200, 429, 429, 429])
  })

  it('gives all addresses of one /64 one bucket', async () => {
    const app = await proxied()
    const found = await statuses(
      app,
      many(5, (i) => `2001:db8:0:1::${i + 1}`),
    )

    expect(found).toEqual([200, 200, 429, 429, 429])
    expect(await statuses(app, ['2001:db8:0:2::1'])).toEqual([200])
  })
}
