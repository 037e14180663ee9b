import { spawn } from 'node:child_process'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import type { SimulationReport } from '@sluice/cli'
import { describe, expect, it } from 'vitest'
import { addNote } from '../support/run-notes.ts'
import { root } from '../support/workspace.ts'
import { testFiles } from './test-files.ts'

const { write } = testFiles('size')

/** A million, the number of the docs, takes minutes of CI: SLUICE_TEST_IDENTITIES=1000000. */
const identities = Number(process.env.SLUICE_TEST_IDENTITIES ?? 250_000)
const linesPerPiece = 10_000
/** The heap of the process, which ends with an error if it needs more: 448 MB for a million identities. */
const heapMegabytes = 160 + Math.ceil(identities * 0.000288)

describe('a log of many identities', () => {
  it('is replayed in bounded memory, and nobody is forgotten', { timeout: 600_000 }, async () => {
    const policies = write('sluice.yaml', 'policies:\n  - { name: once, limit: 1, window: 1d }\n')
    const noted = write(
      'note.mjs',
      `process.on('exit', () => { const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage(); console.error(JSON.stringify({ cpuMs: (userCPUTime + systemCPUTime) / 1000, maxRSS })) })`,
    )
    const child = spawn(
      process.execPath,
      [
        ...[`--max-old-space-size=${heapMegabytes}`, '--conditions=@sluice/source'],
        ...['--import', 'tsx', '--import', noted, 'packages/cli/src/main.ts'],
        ...['simulate', '-', '-p', policies, '--json'],
      ],
      { cwd: root, stdio: 'pipe' },
    )
    const printed = Promise.all([text(child.stdout), text(child.stderr)])
    const ended = new Promise((resolve) => child.once('close', resolve))
    // A process that has ended reads no more: its exit code says why.
    await pipeline(Readable.from(pieces()), child.stdin).catch(() => undefined)
    const [stdout, stderr] = await printed
    expect([await ended, stderr.trim().split('\n').length]).toEqual([0, 1])
    const { totals, log }: SimulationReport = JSON.parse(stdout)
    expect(log).toMatchObject({ requests: identities + 1, unreadable: { lines: 0 } })
    // The first client comes again after all others, and is known.
    expect(totals).toMatchObject({ denied: 1, clients: identities, unlistedRequests: 0 })
    const { cpuMs, maxRSS } = JSON.parse(stderr)
    addNote(
      `sluice simulate: ${Math.round((log.lines / cpuMs) * 1_000)} lines/s of CPU time, ${Math.round(maxRSS / 1_024)} MB at most, with ${identities} identities`,
    )
  })
})

/** A log in which each line has another address, and the last one that of the first. */
function* pieces(): Generator<string> {
  for (let from = 0; from < identities; from += linesPerPiece) {
    let piece = ''
    for (let number = from; number < from + linesPerPiece; number += 1) piece += lineOf(number)
    yield piece
  }
  yield lineOf(0)
}

function lineOf(number: number): string {
  const address = `10.${number >> 16}.${(number >> 8) & 255}.${number & 255}`
  return `${address} - - [21/Nov/2026:10:00:00 +0000] "GET /articles/${number % 5_000} HTTP/1.1" 200 5123 "-" "Mozilla/5.0"\n`
}
