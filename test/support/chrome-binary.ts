import { findOnPath, installPackage, isExecutable } from './system-package.ts'

const NAMES = ['google-chrome', 'google-chrome-stable', 'chromium', 'chromium-browser', 'chrome']
const MAC = '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome'

/**
 * The path of a Chrome or Chromium: `CHROME_BIN`, else one that is found, else one that is installed now with apt.
 * Answers what went wrong where none of these works.
 */
export function findOrInstallChrome(): { path: string } | { problem: string } {
  const found = findChrome()
  if (found !== undefined) return { path: found }
  const problem = installPackage({ what: 'Chrome', apt: ['chromium'] })
  const installed = findChrome()
  return installed === undefined ? { problem } : { path: installed }
}

function findChrome(): string | undefined {
  const declared = process.env.CHROME_BIN
  if (!declared) return findOnPath(NAMES) ?? (isExecutable(MAC) ? MAC : undefined)
  if (isExecutable(declared)) return declared
  throw new Error(
    `CHROME_BIN is ${declared}, which is not an executable file. Correct or unset it.`,
  )
}
