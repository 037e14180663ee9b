import { describe, expect, it } from 'vitest'
import { until } from '../../support/until.ts'
import { confirm, hindrances, show, views } from './browser.ts'
import { usePage } from './page-suite.ts'

const note = { author: 'bob', reason: 'a test' }
/** The version of the file alone. */
let base: string | undefined

const suite = usePage(async ({ policies }) => {
  base ??= policies.version
  if (policies.version !== base) await policies.rollback(base, note)
})
const { text } = suite

async function exhaust(who: string): Promise<void> {
  await until(`${who} is denied`, async () => (await login(who)) === 429)
}

/** Changes the limit of logins behind the back of the page. */
async function set(limit: number): Promise<string> {
  return suite.api.policies.set({ policy: 'login', field: 'limit', value: limit }, note)
}

const login = (who: string) => suite.api.ask('POST', '/login', { 'x-user': who })

describe('each view', { timeout: 60_000 }, () => {
  it('shows its content accessibly, in light and dark', async () => {
    const { page } = suite.watched
    await exhaust('ada')
    const words = {
      Overview: 'What changed',
      Policies: 'POST /login',
      Keys: 'Unlock everybody under one policy',
      Top: 'user ada',
      Queues: 'the printer answered 502',
      Audit: 'login limit 5 → 4',
    }
    await set(4)
    for (const name of views) {
      await show(page, name)
      await text(words[name])
      for (const scheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme: scheme })
        expect(await hindrances(page), `${name} in ${scheme}`).toEqual([])
      }
    }
  }, 60_000)

  it('has accessible dialogs whose first field has the focus', async () => {
    const { page } = suite.watched
    await exhaust('ada')
    await set(4)
    const check = async (button: string) => {
      await page.getByRole('button', { name: button }).first().click()
      await page.getByRole('dialog').locator('.body :is(input, select):focus').waitFor()
      expect(await hindrances(page), button).toEqual([])
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
    }
    await show(page, 'Policies')
    for (const button of ['Change sustained', 'Undo login', 'Kill switch']) await check(button)
    await show(page, 'Keys')
    await page.getByLabel('Key', { exact: true }).fill('user ada')
    await page.keyboard.press('Enter')
    for (const button of ['Raise the limit', 'Reset its count', 'Block']) await check(button)
    await check('Unlock everybody')
    await show(page, 'Queues')
    for (const button of ['Retry all', 'Delete job']) await check(button)
    await show(page, 'Audit')
    await check('Undo')
    await show(page, 'Top')
    await page.getByText('Near a limit', { exact: true }).click()
    await text('The last 24 hours')
    expect(await hindrances(page), 'near').toEqual([])
  }, 60_000)

  it.each([
    [1024, 768],
    [360, 740],
  ])('fits a screen of %d × %d, with every action in sight', async (width, height) => {
    const { page } = suite.watched
    await exhaust('ada')
    await set(4)
    await page.setViewportSize({ width, height })
    for (const name of views) {
      await show(page, name)
      await page.waitForTimeout(300)
      expect(await page.evaluate(covered), name).toEqual([])
      const spare = await page.evaluate('innerWidth - document.documentElement.scrollWidth')
      expect(spare, name).toBeGreaterThanOrEqual(0)
      expect(await hindrances(page), name).toEqual([])
    }
  })
})

describe('policies', () => {
  it('are changed: the next request meets the new limit, and is let through in shadow', async () => {
    const { page } = suite.watched
    expect(await login('bob')).toBe(200)
    await show(page, 'Policies')
    await page.getByRole('button', { name: 'Change login' }).click()
    await page.getByLabel('Limit', { exact: true }).fill('-1')
    await text('A whole number, 0 or more')
    await page.getByLabel('Limit', { exact: true }).fill('1')
    await text('policies.login.limit')
    await confirm(page, 'Apply')
    expect(await login('bob')).toBe(429)
    await page.getByRole('button', { name: 'Change login' }).click()
    await page.getByLabel('Limit', { exact: true }).fill('0')
    await text('policies.login.limit')
    await confirm(page, 'Try in shadow')
    expect(await login('bob')).toBe(200)
    await show(page, 'Audit')
    await text('login limit 1 → 0, login mode')
  }, 60_000)

  it('are not changed over a conflicting change', async () => {
    const { page } = suite.watched
    await show(page, 'Policies')
    await page.getByRole('button', { name: 'Change login' }).click()
    await page.getByLabel('Limit', { exact: true }).fill('3')
    await text('policies.login.limit')
    await set(4)
    await page.getByLabel('Reason').fill('second')
    await page.getByRole('button', { name: 'Apply' }).click()
    await text('Someone else has changed the policies')
    expect((await suite.api.policies.status()).entries).toMatchObject([{ value: 4 }])
  }, 60_000)

  it('refuse nothing while the kill switch is on, as every view shows', async () => {
    const { page } = suite.watched
    await exhaust('dora')
    await show(page, 'Policies')
    await page.getByRole('button', { name: 'Kill switch' }).click()
    await page.getByText('Let everything pass', { exact: true }).click()
    await text('Every request passes, uncounted.')
    await page.getByText('Count only', { exact: true }).click()
    await confirm(page, 'Count only')
    await text('The kill switch is on')
    expect(await login('dora')).toBe(200)
    await show(page, 'Overview')
    await text('The kill switch is on')
  }, 60_000)

  it('are changed by the keyboard alone; Escape leaves, and the focus returns', async () => {
    const { page } = suite.watched
    await show(page, 'Policies')
    await page.getByRole('button', { name: 'Change login' }).focus()
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await until('the focus returns', async () => (await page.evaluate(focused)) === 'Change login')
    await page.keyboard.press('Enter')
    const limit = page.getByLabel('Limit', { exact: true })
    await limit.and(page.locator(':focus')).waitFor()
    await page.keyboard.press('ControlOrMeta+a')
    await page.keyboard.type('0')
    expect(await limit.inputValue()).toBe('0')
    await text('policies.login.limit')
    await page.getByLabel('Reason').focus()
    await page.keyboard.type('by hand')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    expect(await login('emma')).toBe(429)
  }, 60_000)
})

/** The verdict on a key: the plan in `sustained` is known from a request alone. */
const unclear = 'The limit of sustained depends on the request.'

describe('a key', () => {
  it('is looked up as it is typed, and unlocked', async () => {
    const { page } = suite.watched
    await exhaust('frida')
    await show(page, 'Keys')
    await page.getByLabel('Key', { exact: true }).fill('user frida')
    await page.keyboard.press('Enter')
    await text('Denied by login for another 15 min. Denials within eleven minutes: login 1.')
    await page.getByRole('button', { name: 'Reset its count' }).click()
    await confirm(page, 'Reset its count')
    await text(unclear)
    await text('keys.reset')
    expect(await login('frida')).toBe(200)
    expect(page.url()).not.toContain('frida')
  }, 60_000)

  it('is blocked, unblocked, and gets a temporary limit', async () => {
    const { page } = suite.watched
    const ask = () => suite.api.ask('GET', '/', { 'x-user': 'gwen' })
    await show(page, 'Keys')
    await page.getByLabel('Key', { exact: true }).fill('user gwen')
    await page.getByRole('button', { name: 'Look up' }).click()
    const unblock = page.getByRole('button', { name: 'Unblock' })
    await text('not blocked')
    expect(await unblock.count()).toBe(0)
    await page.getByRole('button', { name: 'Block', exact: true }).click()
    await confirm(page, 'Block')
    await text('Blocked by penalty for another 60 min')
    await text('denied requests take nothing')
    for (let time = 0; time < 3; time += 1) expect(await ask()).toBe(429)
    await unblock.click()
    expect(await hindrances(page), 'the dialog of Unblock').toEqual([])
    await confirm(page, 'Unblock')
    await text(unclear)
    await show(page, 'Overview')
    await page.getByRole('row', { name: /user gwen.*penalty lifted/ }).waitFor()
    await show(page, 'Keys')
    await page.getByRole('button', { name: 'Raise the limit' }).click()
    await page.getByRole('dialog').getByLabel('Policy').selectOption('sustained')
    await page.getByText('Other', { exact: true }).click()
    await page.getByLabel('New limit').fill('0')
    await confirm(page, 'Raise')
    expect(await ask()).toBe(429)
    await page.getByRole('button', { name: 'Block', exact: true }).click()
    await confirm(page, 'Block')
    await page.getByRole('button', { name: 'Raise the limit' }).click()
    await text('penalty still blocks it for another 60 min.')
    await page.getByText('Other', { exact: true }).click()
    await page.getByLabel('New limit').fill('1')
    await text('It requested about 4 / 10m lately, so sustained will deny the rest.')
    await page.getByText('Unlimited', { exact: true }).click()
    expect(await hindrances(page), 'the dialog of a blocked key').toEqual([])
    await confirm(page, 'Raise and unblock')
    expect(await ask()).toBe(200)
    await text('It has its own limit: sustained unlimited / 10m until')
  }, 60_000)

  it('is found by the list of those who are limited; of a long list few rows are drawn', async () => {
    const { page } = suite.watched
    const users = Array.from({ length: 99 }, (_, index) => `user-${index}`)
    await set(0)
    await Promise.all(users.map(login))
    await show(page, 'Top')
    const table = page.getByRole('table', { name: 'Busiest keys' })
    await table.getByRole('link').first().waitFor()
    await until('all are counted', async () => {
      return Number(await table.getAttribute('aria-rowcount')) >= users.length
    })
    expect(await table.getByRole('row').count()).toBeLessThan(60)
    await table.getByRole('link').first().click()
    await text('Denied by login')
  }, 60_000)
})

it('dead letters are run again, and deleted', async () => {
  const { page } = suite.watched
  await show(page, 'Queues')
  await page.getByRole('button', { name: 'Delete job' }).first().click()
  await confirm(page, 'Delete')
  await page.getByRole('button', { name: 'Retry all 2' }).click()
  await confirm(page, 'Retry')
  await text('2 run again.')
}, 60_000)

/** Names the controls that cannot be pressed where they are when they are scrolled to. */
const covered = `[...document.querySelectorAll('main :is(button, a, input)')].flatMap((element) => {
  element.scrollIntoView({ block: 'nearest' })
  const { left, top, width, height } = element.getBoundingClientRect()
  if (width === 0) return []
  const found = document.elementFromPoint(left + width / 2, top + height / 2)
  const isSeen = element.contains(found) || found?.contains(element) || found?.closest('label')
  return isSeen ? [] : [element.ariaLabel ?? element.textContent]
})`

const focused = 'document.activeElement.ariaLabel'
