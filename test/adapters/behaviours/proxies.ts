import { expect, it } from 'vitest'
import { inTurn } from '../../support/in-turn.ts'
import type { App, Behaviour } from '../adapter-conformance.ts'
import type { Question } from '../ask.ts'

/** The statuses of requests with these values of X-Forwarded-For, one after the other. */
const statuses = (app: App, values: readonly string[], question: Question = {}) =>
  inTurn(values, async (value) => {
    const headers = { 'x-forwarded-for': value }
    return (await app.ask('/', { ...question, headers })).status
  })

const many = <T>(count: number, make: (index: number) => T) => Array.from(Array(count).keys(), make)
const two = { limit: 2, window: '1m' } as const

/** X-Forwarded-For where a proxy is trusted: only the framework's own settings say whom to believe. */
export const proxies: Behaviour = ({ driver, start }) => {
  const proxied = () => start({ limits: [two], trustProxy: '127.0.0.1' })

  it('trusts a trusted proxy, but not the addresses a client added before it', async () => {
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

  it('counts all invalid forwarded addresses in one bucket', async () => {
    const unknown = many(5, (i) => `unknown-${i}`)
    const found = await statuses(await proxied(), unknown)
    expect(found).toEqual([200, 200, 429, 429, 429])
  })
}
