import type { Browser } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest'
import { type RedisServer, startRedis } from '../../support/redis-server.ts'
import { openPage, startBrowser, type WatchedPage } from './browser.ts'
import { type LimitedApi, startLimitedApi } from './limited-api.ts'

interface PageSuite {
  readonly browser: Browser
  readonly redis: RedisServer
  readonly api: LimitedApi
  readonly watched: WatchedPage
  text(words: string): Promise<void>
}

/** Opens the page in each test of a file, on a Redis and an API. A page that does what it must not do fails its test. */
export function usePage(before?: (api: LimitedApi) => Promise<unknown>): PageSuite {
  const suite = {} as { -readonly [Part in keyof PageSuite]: PageSuite[Part] }
  suite.text = (words) => suite.watched.page.getByText(words).first().waitFor()

  beforeAll(async () => {
    const browser = await startBrowser()
    if (!browser) return
    suite.browser = browser
    suite.redis = await startRedis()
    suite.api = await startLimitedApi(suite.redis.url)
  }, 400_000)

  afterAll(async () => {
    await suite.browser?.close()
    await suite.api?.[Symbol.asyncDispose]()
    await suite.redis?.stop()
  })

  beforeEach(async (test) => {
    if (!suite.browser) return test.skip('there is no Chrome')
    await before?.(suite.api)
    suite.watched = await openPage(suite.browser, suite.api.page)
  })

  afterEach(async () => {
    await suite.watched?.page.close()
    expect(suite.watched?.faults ?? []).toEqual([])
  })

  return suite
}
