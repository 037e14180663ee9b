// Runs every fault against real servers and fleets of real processes, and prints what came of it as a table.
import { writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { runCell } from './cell.ts'
import type { Fault } from './fault.ts'
import { faults, faultsUnderGrants } from './faults.ts'
import { judge } from './judge.ts'
import { type JudgedCell, markdownTable, setting } from './table.ts'

const usage = 'npm run test:faults -- [--only NAME] [--fleet 1|4] [--markdown FILE]'
const sizes = [1, 4]
const beforeMs = 2_500
const lastsMs = 3_200

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    fleet: { type: 'string' },
    markdown: { type: 'string' },
  },
})

const chosen = faults.filter(({ name }) => values.only === undefined || name.includes(values.only))
const fleets = sizes.filter((size) => values.fleet === undefined || String(size) === values.fleet)
if (chosen.length === 0 || fleets.length === 0) {
  console.error(`${usage}\nNAME is a part of one of: ${faults.map(({ name }) => name).join(', ')}`)
  process.exit(2)
}

const judged: JudgedCell[] = []
for (const fault of chosen) {
  for (const size of fleets) {
    if (size === 1 && fault.splitsFleet) continue
    keep(await judgedCell({ fault, size }))
  }
}
for (const fault of faultsUnderGrants.filter((each) => chosen.includes(each))) {
  if (fleets.includes(1)) keep(await judgedCell({ fault, size: 1, prefetch: true }))
}
const table = `${setting()}\n${markdownTable(judged)}`
process.stdout.write(`\n${table}`)
if (values.markdown !== undefined) await writeFile(values.markdown, table)
const broken = judged.flatMap(({ verdicts }) => verdicts.flatMap(({ problems }) => problems))
if (broken.length > 0) process.exitCode = 1
// Ends processes of fleets that did not get to their end: they end with this one.
process.exit()

function keep(run: JudgedCell | undefined): void {
  if (run) judged.push(run)
  else process.exitCode = 1
}

/** Both frameworks at once, each with a fleet of its own; `undefined` when the cell did not get to its end. */
async function judgedCell({
  fault,
  size,
  prefetch = false,
}: {
  fault: Fault
  size: number
  prefetch?: boolean
}): Promise<JudgedCell | undefined> {
  process.stderr.write(`${fault.name}${prefetch ? ' with prefetch' : ''}, fleet of ${size}: `)
  try {
    const cell = await runCell({
      fault,
      size,
      prefetch,
      frameworks: ['express', 'fastify'],
      rates: { fallback: 100, open: 20, closed: 20 },
      deadlineMs: 100,
      beforeMs,
      lastsMs: fault.lastsMs ?? lastsMs,
    })
    const verdicts = cell.fleets.map((fleet) => judge(cell, fleet))
    const problems = verdicts.flatMap((verdict) => verdict.problems)
    process.stderr.write(`${problems.length === 0 ? 'kept' : problems.join('; ')}\n`)
    return { cell, verdicts }
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
    return undefined
  }
}
