import { appendFileSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Where the workers leave notes for the end of the run; the path reaches them by the environment. */
const VARIABLE = 'SLUICE_RUN_NOTES'

/** Begins a run without notes. Returns what prints them at its end. For each further project of the run there is nothing left to do. */
export function collectNotes(): () => void {
  const file = join(tmpdir(), `sluice-notes-${process.pid}`)
  if (process.env[VARIABLE] === file) return () => undefined
  process.env[VARIABLE] = file
  rmSync(file, { force: true })
  appendFileSync(file, '')
  return () => {
    process.stdout.write(readFileSync(file, 'utf8'))
    rmSync(file)
  }
}

/** Says at the end of the run what could not be tried, since a skipped test is easily overlooked. */
export function addNote(text: string): void {
  const file = process.env[VARIABLE]
  if (file === undefined) console.log(text)
  else appendFileSync(file, `${text}\n`)
}
