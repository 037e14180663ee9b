import { findOnPath, installPackage, isExecutable } from './system-package.ts'

/** The programs of Prometheus, with the names that they have, and the packages that have them. */
const programs = {
  prometheus: { names: ['prometheus'], brew: ['prometheus'], apt: ['prometheus'] },
  promtool: { names: ['promtool'], brew: ['prometheus'], apt: ['prometheus'] },
  alertmanager: {
    // Debian calls it by the longer name.
    names: ['alertmanager', 'prometheus-alertmanager'],
    brew: ['alertmanager'],
    apt: ['prometheus-alertmanager'],
  },
} as const

/**
 * The path of a program of Prometheus: `PROMETHEUS_BIN`, `PROMTOOL_BIN` or `ALERTMANAGER_BIN`, else one on the PATH, else one that is installed
 * now. Throws a message that says what to do when none of these works.
 */
export function findOrInstall(program: keyof typeof programs): string {
  const { names, brew, apt } = programs[program]
  const variable = `${program.toUpperCase()}_BIN`
  const declared = process.env[variable]
  if (declared && isExecutable(declared)) return declared
  const found = findOnPath(names)
  if (found) return found
  const problem = installPackage({ what: program, brew: ['install', ...brew], apt })
  const installed = findOnPath(names)
  if (installed) return installed
  throw new Error(
    `These proofs need ${program}, and none was found or could be installed (${problem}). ` +
      `Install it, so that \`${names.join('` or `')}\` is on the PATH, or set ${variable} to the path of the program.`,
  )
}
