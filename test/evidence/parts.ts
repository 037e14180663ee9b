type Figures = Readonly<Record<string, number>>

export interface Result {
  readonly date: string
  readonly seed: number
  readonly seconds: number
  readonly failures: number
  readonly figures: Figures
}

export interface Part {
  readonly claim: string
  readonly how: string
  readonly files: readonly string[]
  readonly project?: 'tests' | 'proofs'
  /** By how much the tests are larger than in the proofs. @default 1 */
  readonly times?: number
  readonly size: readonly string[]
  /** @default 'no violation' */
  readonly result?: (figures: Figures) => string
}

export const parts: Readonly<Record<string, Part>> = {
  faults: {
    claim: 'The history checker finds faults',
    how: '[Small faults](../test/evidence/planted-faults.ts) are planted in the store, the scripts, the ledger and the clock, one at a time',
    ...{ files: ['evidence/planted-faults'], project: 'tests', size: ['faults'] },
    result: ({ faults }) => `${faults} of ${faults} found`,
  },
  others: {
    claim: 'The checker is impartial',
    how: 'The checker judges [express-rate-limit and rate-limiter-flexible](../test/evidence/other-limiters.test.ts) as it judges Sluice',
    ...{ files: ['evidence/other-limiters'], project: 'tests', size: ['lines'] },
    result: () => 'see below',
  },
  fleets: {
    claim: 'No fleet exceeds its bound, and no answer contradicts another',
    how: 'Three processes in [virtual time](../test/evidence/fleet.ts): messages are late, lost or duplicated; processes crash or stop; clocks jump; Redis fails over',
    ...{ files: ['evidence/fleets'], times: 2, size: ['fleets', 'requests'] },
  },
  witnesses: {
    claim: 'Real processes with a real Redis keep the same promise',
    how: '[Witnesses](../test/oracle/oracle.proof.ts) write a history while processes are killed and stopped, and the network fails',
    ...{ files: ['oracle/oracle'], times: 2, size: ['admittedUnits', 'kills'] },
  },
  models: {
    claim: 'Grants and reservations never exceed a limit, whatever the message order',
    how: '[Models](#the-models) visit every state that two processes can reach',
    ...{ files: ['prefetch/model', 'budgets/model'], size: ['worlds'] },
  },
  twins: {
    claim: 'Memory, Redis and Postgres make the same decisions',
    how: 'Random traces run on each store and on a [naive implementation](../test/stores/oracle/oracle.ts)',
    ...{ files: ['stores/differential'], size: ['traces'] },
  },
  fuzz: {
    claim: 'No input breaks a parser',
    how: '[Random variants](../test/evidence/fuzz.scaled.test.ts) of header fields, policy files, logs, admin bodies, keys and Redis replies are parsed',
    ...{ files: ['evidence/fuzz', 'redis/garbage', 'policies/schema'], times: 3, size: ['inputs'] },
  },
}

const words: Readonly<Record<string, string>> = {
  admittedUnits: 'admitted units',
  lines: 'lines of history',
  worlds: 'states',
}

/** The page with a row of each part that has been run. */
export function evidencePage(
  page: string,
  results: Readonly<Record<string, Result>>,
  machine: string,
): string {
  const rows = Object.entries(parts).flatMap(([name, part]) => {
    const run = results[name]
    if (!run) return []
    const { claim, how, size, result = () => 'no violation' } = part
    const shown = size.map(
      (each) => `${(run.figures[each] ?? 0).toLocaleString('en')} ${words[each] ?? each}`,
    )
    const found = run.failures > 0 ? `**${run.failures} failures**` : result(run.figures)
    const sized = `${shown.join(', ')}, ${run.seconds} s, seed ${run.seed}`
    return [`| ${claim} | ${how} | ${sized} | ${found} | \`-- --only ${name}\` |`]
  })
  const dates = Object.values(results).map(({ date }) => date)
  const [before = '', rest = ''] = page.split(/(?<=<!-- results -->\n)/)
  const [, after = ''] = rest.split(/(?=<!-- end -->)/)
  return `${before}
| claim | how it is checked | size | result | repeat |
| --- | --- | --- | --- | --- |
${rows.join('\n')}

${dates.sort().at(-1)}, ${machine}.

${after}`
}
