import { ProxyWatch } from '@sluice/http/adapter'
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'

let warn: ReturnType<typeof vi.spyOn>
let tests = 0

beforeEach(() => {
  warn = vi.spyOn(console, 'warn').mockReturnValue()
  onTestFinished(() => void warn.mockRestore())
})

/** A watch whose warnings were never given before, and what it sees. */
function watch() {
  tests += 1
  const settings = {
    trust: `trust ${tests}`,
    trustOne: 'trust one',
    count: `count ${tests}`,
    trustAll: 'trust all',
  }
  const advice = {
    untrusted: `a request came with X-Forwarded-For, but trust ${tests} is off, so the address of the connection is counted; trust one; without a proxy, remove the header`,
    oneAddress: `nearly all requests with X-Forwarded-For came from one address, although the forwarded addresses differ: count ${tests} may trust fewer proxies than there are, so that all clients share one limit; trust all. A single very busy client looks the same; in that case ignore this`,
  }
  return { advice, proxies: new ProxyWatch(settings) }
}

const fake = (i: number) => `198.51.100.${i % 250}, 10.0.0.1`

describe('the watch for untrusted proxies', () => {
  it('warns once if X-Forwarded-For arrives and no proxy is trusted', () => {
    const { advice, proxies } = watch()
    for (let i = 0; i < 1_000; i += 1) proxies.see(fake(i), '10.0.0.1', false)
    expect(warn.mock.calls).toEqual([[`sluice: ${advice.untrusted}`]])
  })

  it('warns once if one address sends 500 requests forwarded for many', () => {
    const { advice, proxies } = watch()
    for (let i = 0; i < 499; i += 1) proxies.see(fake(i), '10.0.0.2', 2)
    expect(warn).not.toHaveBeenCalled()
    for (let i = 0; i < 5_000; i += 1) proxies.see(fake(i), '10.0.0.2', 2)
    expect(warn.mock.calls).toEqual([[`sluice: ${advice.oneAddress}`]])
  })

  it('warns if one in twenty comes from elsewhere, not if one in ten does', () => {
    const often = watch()
    for (let i = 0; i < 500; i += 1) {
      often.proxies.see(fake(i), i % 20 === 7 ? `192.0.2.${i % 250}` : '10.0.0.2', 2)
    }
    expect(warn).toHaveBeenCalledTimes(1)

    const rarely = watch()
    for (let i = 0; i < 5_000; i += 1) {
      rarely.proxies.see(fake(i), i % 10 === 7 ? '192.0.2.7' : '10.0.0.2', 2)
    }
    expect(warn).toHaveBeenCalledTimes(1)
  })

  it('does not warn of clients with distinct addresses, nor of one unchanged address', () => {
    const { proxies } = watch()
    for (let i = 0; i < 5_000; i += 1) proxies.see(fake(i), `198.51.100.${i % 250}`, 2)
    for (let i = 0; i < 5_000; i += 1) proxies.see(fake(i % 19), '10.0.0.2', 2)
    expect(warn).not.toHaveBeenCalled()
  })

  it('warns in the next 500 requests if the first was a stray', () => {
    const { proxies } = watch()
    for (let i = 0; i < 1_000; i += 1) {
      proxies.see(fake(i), i === 0 ? '192.0.2.7' : '10.0.0.2', 2)
    }
    expect(warn).toHaveBeenCalledTimes(1)
  })
})
