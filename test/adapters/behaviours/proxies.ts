import { expect, it, vi } from 'vitest'
import type { Behaviour } from '../adapter-conformance.ts'

const forwardedFor = (value: string) => ({ headers: { 'x-forwarded-for': value } })

/** X-Forwarded-For: only the framework's own proxy settings say whom to believe. */
export const proxies: Behaviour = ({ driver, start, limited }) => {
  it('ignores the header where no proxy is trusted, and says once what to set', async () => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    const app = await limited({ limit: 2, window: '1m' })

    const statuses: number[] = []
    for (let i = 0; i < 20; i += 1) {
      const fake = `${i}.${i}.0.1`
      statuses.push(...(await app.statuses(1, '/', forwardedFor(fake))))
    }

    expect(statuses).toEqual([200, 200, ...Array(18).fill(429)])
    const warnings = warn.mock.calls.filter(([text]) => /trust ?proxy/i.test(String(text)))
    expect(warnings.length).toBeLessThanOrEqual(1)
  })

  it('believes a trusted proxy, and not what the client has put left of it', async () => {
    const app = await start({ limits: [{ limit: 2, window: '1m' }], trustProxy: '127.0.0.1' })
    const through = (spoofed: string) => forwardedFor(`${spoofed}, 198.51.100.7`)

    const statuses: number[] = []
    for (let i = 0; i < 20; i += 1) {
      statuses.push(...(await app.statuses(1, '/', through(`10.${i}.0.1`))))
    }
    expect(statuses).toEqual([200, 200, ...Array(18).fill(429)])
    expect(await app.statuses(1, '/', forwardedFor('198.51.100.8'))).toEqual([200])
  })

  it.skipIf(driver.trustsAnyPeer)(
    'ignores the header from a peer that is not the proxy',
    async () => {
      const app = await start({ limits: [{ limit: 2, window: '1m' }], trustProxy: '127.0.0.1' })

      const statuses: number[] = []
      for (let i = 0; i < 5; i += 1) {
        const question = { ...forwardedFor(`10.${i}.0.1`), from: '127.0.0.2' }
        statuses.push(...(await app.statuses(1, '/', question)))
      }
      expect(statuses).toEqual([200, 200, 429, 429, 429])
    },
  )

  it('gives all that a proxy forwards as no address one bucket, not one each', async () => {
    const app = await start({ limits: [{ limit: 2, window: '1m' }], trustProxy: '127.0.0.1' })

    const statuses: number[] = []
    for (let i = 0; i < 5; i += 1) {
      statuses.push(...(await app.statuses(1, '/', forwardedFor(`unknown-${i}`))))
    }
    expect(statuses).toEqual([200, 200, 429, 429, 429])
  })

  it('gives all addresses of one /64 one bucket', async () => {
    const app = await start({ limits: [{ limit: 2, window: '1m' }], trustProxy: '127.0.0.1' })

    const statuses: number[] = []
    for (let i = 1; i < 6; i += 1) {
      statuses.push(...(await app.statuses(1, '/', forwardedFor(`2001:db8:0:1::${i}`))))
    }
    expect(statuses).toEqual([200, 200, 429, 429, 429])
    expect(await app.statuses(1, '/', forwardedFor('2001:db8:0:2::1'))).toEqual([200])
  })
}
