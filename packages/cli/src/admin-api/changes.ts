import { onOneLine } from '@sluice/core'
import { styleOf } from '../terminal/style.ts'
import type { Terminal } from '../terminal/terminal.ts'
import type { Change } from './answers.ts'

const maxNamed = 5

export function describeChange(change: Change, terminal: Terminal): string {
  const { differences, affected, version, dryRun } = change
  const style = styleOf(terminal.stdout, terminal)
  if (differences.length === 0) return 'No differences.\n'
  const lines = differences.map(({ path, from, to, newCount }) => {
    const anew = newCount ? style('yellow', ' (new count)') : ''
    return `  ${style('bold', onOneLine(path))}: ${style('red', plain(from))} → ${style('green', plain(to))}${anew}\n`
  })
  const touched = affected.policies.flatMap(({ policy, newlyDenied, newlyAllowed }) => [
    ...lineOf(policy, 'would be denied', newlyDenied),
    ...lineOf(policy, 'would pass again', newlyAllowed),
  ])
  const unknown = affected.known ? '' : `  Not estimated: ${onOneLine(affected.why ?? '')}\n`
  const heading = dryRun ? 'Differences:\n' : `Version ${onOneLine(version)} is now active:\n`
  return `${heading}${lines.join('')}${dryRun ? touched.join('') + unknown : ''}`
}

type Touched = Change['affected']['policies'][number]['newlyDenied']

function lineOf(policy: string, what: string, keys: Touched): readonly string[] {
  if (keys.length === 0) return []
  const named = keys.slice(0, maxNamed).map(({ digest, name }) => onOneLine(name ?? digest))
  const rest = keys.length > maxNamed ? ' …' : ''
  return [
    `  ${onOneLine(policy)}: ${keys.length} of the busiest keys ${what}: ${named.join(', ')}${rest}\n`,
  ]
}

function plain(value: unknown): string {
  if (value === undefined) return '–'
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return onOneLine(text).slice(0, 400)
}
