// Runs every fault against real servers and fleets of real processes, and prints what came of it as a table.
import { writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { type CellOptions, runCell } from './cell.ts'
import { faults, faultsUnderGrants } from './faults.ts'
import { judge } from './judge.ts'
import { type JudgedCell, markdownTable, setting } from './table.ts'

// npm run test:faults -- [--only NAME] [--fleet 1|4] [--markdown FILE]

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    fleet: { type: 'string' },
    markdown: { type: 'string' },
  },
})
const cells = [
  ...faults.flatMap((fault) => [1, 4].map((size) => ({ fault, size, prefetch: false }))),
  ...faultsUnderGrants.map((fault) => ({ fault, size: 1, prefetch: true })),
].filter(
  ({ fault, size }) =>
    fault.name.includes(values.only) &&
    (values.fleet === undefined || String(size) === values.fleet) &&
    (size > 1 || !fault.splitsFleet),
)
if (cells.length === 0) {
  console.error(`--only takes a part of one of: ${faults.map(({ name }) => name).join(', ')}`)
  process.exit(2)
}

const judged: JudgedCell[] = []
for (const cell of cells) await run(cell)
const table = `${setting()}\n${markdownTable(judged)}`
process.stdout.write(`\n${table}`)
if (values.markdown !== undefined) await writeFile(values.markdown, table)
// Ends processes of fleets that did not get to their end: they end with this one.
process.exit()

/** Both frameworks at once, each with a fleet of its own. */
async function run(chosen: Pick<CellOptions, 'fault' | 'size' | 'prefetch'>): Promise<void> {
  const { fault, size, prefetch } = chosen
  process.stderr.write(`${fault.name}${prefetch ? ' with prefetch' : ''}, fleet of ${size}: `)
  try {
    const cell = await runCell({
      ...{ ...chosen, frameworks: ['express', 'fastify'], deadlineMs: 100, beforeMs: 2_500 },
      rates: { fallback: 100, open: 20, closed: 20 },
      lastsMs: fault.lastsMs ?? 3_200,
    })
    const verdicts = cell.fleets.map((fleet) => judge(cell, fleet))
    const problems = verdicts.flatMap((verdict) => verdict.problems)
    process.stderr.write(`${problems.length === 0 ? 'kept' : problems.join('; ')}\n`)
    if (problems.length > 0) process.exitCode = 1
    judged.push({ cell, verdicts })
  } catch (error) {
    process.exitCode = 1
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  }
}
