import { onOneLine } from '@sluice/core'
import type { Style } from './style.ts'

/** `12,345` */
export function countText(count: number): string {
  return count.toLocaleString('en-US')
}

/** A share in percent: `0.4 %`, and `<0.1 %` for a share just above zero. */
export function shareText(part: number, all: number): string {
  if (part === 0 || all === 0) return '0 %'
  const percent = (part / all) * 100
  return percent < 0.1 ? '<0.1 %' : `${Number(percent.toFixed(1))} %`
}

/** `2026-11-21 10:00:00`, in UTC. */
export function timeText(timeMs: number): string {
  const text = new Date(timeMs).toISOString()
  return `${text.slice(0, 10)} ${text.slice(11, 19)}`
}

const units = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'm'],
  [1_000, 's'],
  [1, 'ms'],
] as const

/** The two largest units: `1h 5m`, `15s`, `250ms`. */
export function durationText(durationMs: number): string {
  const parts: string[] = []
  let rest = Math.round(durationMs)
  for (const [unitMs, unit] of units) {
    const count = Math.floor(rest / unitMs)
    if (count > 0 && parts.length < 2) parts.push(`${count}${unit}`)
    rest -= count * unitMs
  }
  return parts.join(' ') || '0s'
}

/** A cell, with the format of its text on a terminal. */
export type Cell = string | readonly [text: string, format: Parameters<Style>[0]]

/**
 * Lines of a table. A head that begins with `>` has its column at the right. Nothing in a cell can
 * move the cursor, such as the name of a client.
 */
export function table(
  heads: readonly string[],
  rows: readonly (readonly Cell[])[],
  style: Style = (_, text) => text,
): readonly string[] {
  const names = heads.map((head): Cell => [head.replace(/^>/, ''), 'bold'])
  const all = [names, ...rows].map((row) => {
    return row.map((cell) => (typeof cell === 'string' ? ([cell] as const) : cell))
  })
  const texts = all.map((row) => row.map(([text]) => onOneLine(text)))
  const widths = heads.map((_, column) => Math.max(...texts.map((row) => row[column]?.length ?? 0)))
  return all.map((row, line) =>
    row
      .map(([, format], column) => {
        const [text = '', width = 0] = [texts[line]?.[column], widths[column]]
        const isLast = column === heads.length - 1
        const padded = heads[column]?.startsWith('>')
          ? text.padStart(width)
          : text.padEnd(isLast ? 0 : width)
        return format ? style(format, padded) : padded
      })
      .join('  ')
      .trimEnd(),
  )
}

/** Writes JSON that cannot move the cursor of a terminal either. */
export function jsonText(value: unknown): string {
  const text = JSON.stringify(value, undefined, 2)
  const escaped = text.replace(
    /[\u007f-\u009f\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
  return `${escaped}\n`
}
