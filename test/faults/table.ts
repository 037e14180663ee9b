import { execFileSync } from 'node:child_process'
import { cpus } from 'node:os'
import { findOrInstall } from '../support/programs.ts'
import { type CellRun, limit } from './cell.ts'
import type { Verdict } from './judge.ts'

export interface JudgedCell {
  readonly cell: CellRun
  readonly verdicts: readonly Verdict[]
}

const head = [
  'fault',
  'fleet',
  'answered',
  'wait p50 / p99 / max',
  'open: p50 / p99',
  'by mode',
  'cut off',
  'at most',
  'after',
  'told Redis',
  'events',
  'back after',
  'bounds',
]

export function setting(): string {
  const [cpu] = cpus()
  const server = execFileSync(findOrInstall('redis'), ['--version'], { encoding: 'utf8' })
  const redis = /v=(\S+)/.exec(server)?.[1] ?? 'of unknown version'
  const date = new Date().toISOString().slice(0, 10)
  return `${date}, ${cpus().length} cores of ${cpu?.model ?? 'unknown make'}, Node ${process.versions.node}, Redis ${redis}\n`
}

export function markdownTable(cells: readonly JudgedCell[]): string {
  const rows = cells.flatMap(({ cell, verdicts }) => verdicts.map((verdict) => row(cell, verdict)))
  const lines = [head, head.map(() => '---'), ...rows]
  return `${lines.map((fields) => `| ${fields.join(' | ')} |`).join('\n')}\n`
}

function row({ fault, size, prefetch }: CellRun, verdict: Verdict): readonly string[] {
  const { admitted, answered, requests, framework, openWaits } = verdict
  return [
    `${fault.name}${prefetch ? ', with prefetch' : ''}`,
    `${size} × ${framework === 'express' ? 'Express' : 'Fastify'}`,
    answered === requests ? `all ${requests}` : `**${answered} of ${requests}**`,
    waits(verdict.waits),
    openWaits ? `${openWaits.p50.toFixed(2)} / ${openWaits.p99.toFixed(2)} ms` : '–',
    modes(verdict),
    admitted.cutOff === undefined ? '–' : ofLimit(admitted.cutOff),
    ofLimit(admitted.most),
    ofLimit(admitted.after),
    verdict.chargedInAll === undefined
      ? '–'
      : `${verdict.chargedInAll} for ${verdict.admittedInAll}`,
    events(verdict),
    `${(verdict.recoveryMs / 1_000).toFixed(1)} s`,
    verdict.problems.length === 0 ? 'kept' : `**${verdict.problems.join('; ')}**`,
  ]
}

function modes({ openWaits, modes: { passedOpen, refusedClosed } }: Verdict): string {
  return openWaits ? `open ${passedOpen} × 200, closed ${refusedClosed} × 503` : '–'
}

function waits({ p50, p99, max }: Verdict['waits']): string {
  return `${p50.toFixed(1)} / ${p99.toFixed(1)} / ${max.toFixed(1)} ms`
}

function ofLimit(units: number): string {
  return `${(units / limit).toFixed(2)}`
}

const shown: readonly (readonly [event: string, name: string])[] = [
  ['deadline-missed', 'missed'],
  ['open', 'open'],
  ['half-open', 'probe'],
  ['closed', 'closed'],
  ['late-reply kept', 'late, kept'],
  ['late-reply refunded', 'late, refunded'],
  ['clock-skew', 'clock skew'],
]

function events({ events: counts, reconciledUnits, heldUp }: Verdict): string {
  const parts = shown.flatMap(([event, name]) => {
    const count = counts[event] ?? 0
    return count === 0 ? [] : [`${name} ${count}`]
  })
  if (reconciledUnits > 0) parts.push(`charged later ${reconciledUnits}`)
  if (heldUp > 0) parts.push(`held up ${heldUp}`)
  return parts.join(', ') || 'none'
}
