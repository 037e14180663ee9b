import { cpus, loadavg, release, totalmem, type } from 'node:os'
import { readText } from '../../support/workspace.ts'

/** Where it is measured, and how busy it is when the benchmark begins: figures of a busy machine are too high. */
export function describeMachine(): string {
  const [first] = cpus()
  const load = loadavg()[0]?.toFixed(1)
  const memory = `${Math.round(totalmem() / 2 ** 30)} GB`
  return `${first?.model}, ${cpus().length} cores, ${memory}, ${type()} ${release()}, load ${load}`
}

/** The versions that are installed. */
export function versionsOf(packages: readonly string[]): Record<string, string> {
  const locked: Record<string, { version?: string; resolved: string; link?: true } | undefined> =
    JSON.parse(readText('package-lock.json')).packages
  const versionOf = (name: string): string => {
    const found = locked[`test/bench/node_modules/${name}`] ?? locked[`node_modules/${name}`]
    return (found?.link ? locked[found.resolved] : found)?.version ?? 'not found'
  }
  const installed = packages.map((name) => [name, versionOf(name)])
  return { node: process.versions.node, ...Object.fromEntries(installed) }
}
