import axe from 'axe-core'
import { type Browser, chromium, type Page } from 'playwright-core'
import { findOrNote } from '../../support/programs.ts'

export const views = ['Overview', 'Policies', 'Keys', 'Top', 'Queues', 'Audit'] as const

export async function startBrowser(): Promise<Browser | undefined> {
  const executablePath = findOrNote('chrome', 'the page of admin in a browser')
  if (executablePath === undefined) return undefined
  return chromium.launch({ executablePath, args: ['--no-sandbox'] })
}

export type WatchedPage = Awaited<ReturnType<typeof openPage>>

export async function openPage(
  browser: Browser,
  url: string,
  { width = 1280, scheme = 'light' }: { width?: number; scheme?: 'light' | 'dark' } = {},
) {
  const page = await browser.newPage({
    viewport: { width, height: 800 },
    colorScheme: scheme,
    locale: 'en-GB',
    // Half-way through a change of colours nothing can be read.
    reducedMotion: 'reduce',
  })
  const { origin } = new URL(url)
  /** What it must not do: violations of the policy of contents, errors of scripts, and requests to other origins. */
  const faults: string[] = []
  /** Answers of the API, as `GET session 200`. */
  const calls: string[] = []
  const asked: string[] = []
  page.on('pageerror', (error) => faults.push(`error: ${error.message}`))
  page.on('console', (message) => {
    if (/Content Security Policy|TrustedHTML/.test(message.text())) faults.push(message.text())
  })
  page.on('request', (request) => {
    asked.push(request.url())
    const address = request.url()
    const isOwn = [`${origin}/`, 'data:', 'blob:'].some((own) => address.startsWith(own))
    // A file has no origin.
    if (!isOwn && address !== url) faults.push(`asks ${address}`)
  })
  page.on('response', (response) => {
    const [, path] = /\/api\/v1\/([^?]*)/.exec(response.url()) ?? []
    if (path !== undefined)
      calls.push(`${response.request().method()} ${path} ${response.status()}`)
  })
  await page.goto(url)
  return { page, faults, calls, asked }
}

/** Finds what hinders people, by the rules of WCAG 2.2 AA, in the page or in a part of it. */
export async function hindrances(page: Page, part = 'html'): Promise<readonly string[]> {
  // As the debugger of the browser, which the policy of contents does not bind.
  await page.evaluate(axe.source)
  // A colour that is still changing has another contrast.
  await page.evaluate('Promise.allSettled(document.getAnimations().map((one) => one.finished))')
  return page.evaluate(`axe
    .run('${part}', { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })
    .then(({ violations }) =>
      violations.flatMap(({ id, nodes }) => nodes.map(({ html, any }) => id + ': ' + html.slice(0, 160) + ' ' + (any[0]?.message ?? ''))),
    )`)
}

export async function confirm(page: Page, button: string): Promise<void> {
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Reason').fill('a proof')
  await dialog.getByRole('button', { name: button, exact: true }).click()
  await dialog.waitFor({ state: 'detached' })
}

export async function show(page: Page, name: (typeof views)[number]): Promise<void> {
  await page.getByRole('link', { name, exact: true }).click()
  await page.getByRole('heading', { name, level: 1 }).waitFor()
}
