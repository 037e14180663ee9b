import { onOneLine } from '@sluice/core'
import type { Style } from './style.ts'

export interface Column {
  readonly title: string
  /** Numbers stand to the right. @default 'left' */
  readonly align?: 'left' | 'right'
}

/** A cell, with the format of its text on a terminal. */
export type Cell = string | readonly [text: string, format: Parameters<Style>[0]]

/** Writes rows under titles, two blanks apart. Nothing in a cell can move the cursor. */
export function table(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  style: Style,
): string {
  const texts = rows.map((row) => row.map((cell) => onOneLine(textOf(cell))))
  const widths = columns.map(({ title }, index) =>
    Math.max(title.length, ...texts.map((row) => row[index]?.length ?? 0)),
  )
  const pad = (text: string, index: number): string => {
    const width = widths[index] ?? 0
    if (columns[index]?.align === 'right') return text.padStart(width)
    return index === columns.length - 1 ? text : text.padEnd(width)
  }
  const head = columns.map(({ title }, index) => pad(title, index)).join('  ')
  const lines = texts.map((row, at) =>
    row
      .map((text, index) => {
        const cell = rows[at]?.[index]
        const padded = pad(text, index)
        return typeof cell === 'object' ? style(cell[1], padded) : padded
      })
      .join('  '),
  )
  return [style('bold', head), ...lines].map((line) => `${line}\n`).join('')
}

function textOf(cell: Cell): string {
  return typeof cell === 'string' ? cell : cell[0]
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
