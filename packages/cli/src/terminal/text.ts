import { onOneLine } from '@sluice/core'
import { Help } from 'commander'
import type { Column } from '../report/columns.ts'
import type { Style } from './style.ts'
import type { Output } from './terminal.ts'

/** A cell, with the format of its text on a terminal. */
export type Cell = string | readonly [text: string, format: Parameters<Style>[0]]

/**
 * Formats a table. A heading that starts with `>` right-aligns its column. Cell contents, such as
 * client names, cannot move the cursor.
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

export function columnTable<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
): readonly string[] {
  return table(
    columns.map(([head]) => head),
    rows.map((row) => columns.map(([, cell]) => cell(row))),
  )
}

export function wrapped(text: string, { columns }: Output): string {
  return columns === undefined ? text : new Help().boxWrap(text, columns)
}

/** Cuts the middle of a string, since names differ at their ends. */
export function cutMiddle(text: string, width: number): string {
  const half = Math.floor((width - 1) / 2)
  return text.length <= width ? text : `${text.slice(0, half)}…${text.slice(-half)}`
}

/** A heading and its lines, after an empty line; nothing without lines. */
export function section(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : ['', title, ...lines]
}

/** Writes JSON that cannot move a terminal's cursor either. */
export function jsonText(value: unknown): string {
  const text = JSON.stringify(value, undefined, 2)
  const escaped = text.replace(
    /[\u007f-\u009f\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
  return `${escaped}\n`
}
