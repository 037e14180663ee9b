import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { HistoryLine } from '@sluice/testing/histories'
import type { RunnerTestCase } from 'vitest'

declare module 'vitest' {
  interface TaskMeta {
    /** Sizes of a test, which `npm run evidence` adds up. */
    figures?: Readonly<Record<string, number>>
  }
}

const { EVIDENCE_TIMES, EVIDENCE_SEED, EVIDENCE_PATH, EVIDENCE_HISTORIES } = process.env

/** By how much `npm run evidence` multiplies the size of a test. */
export const times = Number(EVIDENCE_TIMES ?? 1)

/** The seed of `npm run evidence`, and the path to one failure of it. */
export const replayed: { readonly seed?: number; readonly path?: string } = {
  ...(EVIDENCE_SEED && { seed: Number(EVIDENCE_SEED) }),
  ...(EVIDENCE_PATH && { path: EVIDENCE_PATH }),
}

export function note(
  { meta }: Pick<RunnerTestCase, 'meta'>,
  figures: Readonly<Record<string, number>>,
): void {
  meta.figures = figures
}

/** Keeps the history of a failure. One name is one file, so that the smallest one stays. */
export function keepHistory(name: string, lines: readonly HistoryLine[]): void {
  if (!EVIDENCE_HISTORIES) return
  mkdirSync(EVIDENCE_HISTORIES, { recursive: true })
  const file = join(EVIDENCE_HISTORIES, `${name.replaceAll(/\W+/g, '-')}.jsonl`)
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
}
