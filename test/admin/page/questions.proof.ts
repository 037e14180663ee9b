import { expect, it } from 'vitest'
import { openPage, show } from './browser.ts'
import { usePage } from './page-suite.ts'

/** The longest time (ms) that an answer may take, and the longest first paint. */
const answerMs = 10_000
const paintMs = 300

/** The version in which somebody has lowered a limit. */
let lowered = ''

const suite = usePage(async ({ ask, policies }) => {
  const note = { author: 'bob', reason: 'too many guesses' }
  if (policies.state.entries.length === 0)
    lowered = await policies.set({ policy: 'login', field: 'limit', value: 4 }, note)
  for (let time = 0; time < 30; time += 1) await ask('POST', '/login', { 'x-user': 'hugo' })
})

/** Answers a question by clicks on links and buttons, and proves how many and how long. */
async function answers(words: string | RegExp, ...clicks: readonly string[]): Promise<void> {
  const { page } = suite.watched
  const startedMs = performance.now()
  expect(clicks.length).toBeLessThanOrEqual(3)
  for (const name of clicks) {
    const exact = { name, exact: true }
    await page.getByRole('link', exact).or(page.getByRole('button', exact)).first().click()
  }
  await page.getByText(words).first().waitFor({ timeout: answerMs })
  expect(performance.now() - startedMs).toBeLessThan(answerMs)
}

/** Has the outage noticed: what is denied is known without Redis, and others have to ask it. */
async function asksInVain(): Promise<void> {
  const guests = Array.from({ length: 10 }, (_, each) => `guest-${each}`)
  for (const guest of guests) await suite.api.ask('POST', '/login', { 'x-user': guest })
}

/** The four questions of an incident. */
async function asked(state: 'up' | 'frozen' | 'down'): Promise<void> {
  const { page } = suite.watched
  await answers('user hugo')
  await answers('Limited in the last two minutes')
  await answers(
    state === 'down' ? /The store is unavailable, so/ : /Denied by login for another /,
    'user hugo',
  )
  await answers(/Denials within eleven minutes: login \d+\./)
  if (state === 'up') await answers(/^bob, .*: login limit 5 → 4 \(too many guesses\)$/)
  await show(page, 'Overview')
  if (state !== 'up') {
    await page.getByText('Store unavailable').waitFor()
    const nothing = 'The store is unavailable, so nothing can be changed now.'
    await answers(nothing, 'user hugo', 'Raise the limit')
    await page.keyboard.press('Escape')
    await show(page, 'Overview')
    return answers('login limit 5 → 4')
  }
  await answers(/may take .* under login/, 'user hugo', 'Raise the limit', 'Raise')
  await show(page, 'Overview')
  await answers('undone', 'login limit 5 → 4', `Undo ${lowered}`, 'Undo')
}

it('answers the four questions of an incident while Redis is up', async () => {
  const { page } = suite.watched
  // The first load pays for a browser that has just started.
  const paints: number[] = []
  for (let time = 0; time < 3; time += 1) {
    await page.reload()
    await page.getByText('user hugo').first().waitFor()
    paints.push(Number(await page.evaluate(firstPaint)))
  }
  expect(Math.min(...paints)).toBeLessThan(paintMs)
  await asked('up')
}, 60_000)

it('answers them while Redis is frozen, and after a reload', async () => {
  const { api, browser, redis, watched } = suite
  await watched.page.getByText('login limit 5 → 4').first().waitFor()
  await answers(/Denied by login for another /, 'user hugo')
  redis.pause()
  try {
    await asksInVain()
    await answers(/Last known at .*: the store does not answer now/)
    await show(watched.page, 'Overview')
    await asked('frozen')
    const again = await openPage(browser, api.page)
    await again.page.getByText('The store is unavailable').waitFor({ timeout: answerMs })
    await again.page.getByText('user hugo').first().waitFor({ timeout: answerMs })
    await show(again.page, 'Policies')
    await again.page.getByText('POST /login').first().waitFor()
    await again.page.close()
  } finally {
    redis.resume()
  }
}, 90_000)

it('answers them while Redis is down', async () => {
  const { redis, watched } = suite
  await watched.page.getByText('login limit 5 → 4').first().waitFor()
  await redis.stop()
  await asksInVain()
  await asked('down')
}, 90_000)

const firstPaint = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
