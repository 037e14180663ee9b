import { parseArgs } from 'node:util'
import type { Suite } from './harness/bench.ts'
import { plottedSuites } from './report/plots.ts'

export interface BenchOptions {
  /** Up to nine minutes, for a look; the full run takes up to half an hour. */
  readonly quick: boolean
  readonly json: string | undefined
  readonly markdown: string | undefined
  readonly plots: string | undefined
  /** Of the suites `concurrency` and `http`, only the cases whose names contain this. */
  readonly case: string | undefined
  /** The names of the suites to run. */
  readonly suites: readonly string[]
}

/** What is wrong with the command line, said to whoever typed it. */
export class UsageError extends Error {}

export const usage = `npm run bench -- [--quick] [--suite NAME,NAME] [--case TEXT] [--json FILE] [--markdown FILE] [--plots DIR]`

/** The suites that can be measured in part. */
const suitesByCase = ['concurrency', 'http']

export function benchOptions(
  args: readonly string[],
  known: readonly Pick<Suite, 'name'>[],
): BenchOptions {
  const { quick, json, markdown, plots, suite, case: caseText } = parse(args)
  const suiteNames = known.map(({ name }) => name)
  const suites = suite === undefined ? suiteNames : suite.split(',').map((name) => name.trim())
  const unknown = suites.find((name) => !suiteNames.includes(name))
  if (unknown !== undefined) {
    throw new UsageError(`--suite: there is no '${unknown}', but ${suiteNames.join(', ')}`)
  }
  for (const [flag, value] of Object.entries({ json, markdown, plots })) {
    if (value === '') throw new UsageError(`--${flag} needs a path`)
  }
  if (plots !== undefined && !suites.some((name) => plottedSuites.includes(name))) {
    throw new UsageError(`--plots draws only ${plottedSuites.join(', ')}: add one to --suite`)
  }
  if (caseText !== undefined && !suites.every((name) => suitesByCase.includes(name))) {
    throw new UsageError(
      `--case chooses among the cases of ${suitesByCase.join(' or ')}: add --suite`,
    )
  }
  return { quick, json, markdown, plots, case: caseText, suites }
}

function parse(args: readonly string[]) {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        quick: { type: 'boolean', default: false },
        json: { type: 'string' },
        markdown: { type: 'string' },
        plots: { type: 'string' },
        case: { type: 'string' },
        suite: { type: 'string' },
      },
    })
    return values
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}
