import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { run } from '../support/run.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { root } from '../support/workspace.ts'

// `npm run mutation`: makes one small mistake after the other in a copy of the last commit, and looks whether the suites of memory
// and of one Redis notice it. Writes results.md. `-- <paths>` tries some files alone, and only prints.

const files = [
  'packages/core/src/algorithms/*.ts',
  'packages/core/src/engine/*.ts',
  'packages/core/src/ledger/*.ts',
  'packages/redis/src/keys/*.ts',
]
const tools = ['@stryker-mutator/core@9', '@stryker-mutator/vitest-runner@9']
const hours = 3_600_000

interface Mutant {
  readonly status: 'Killed' | 'Timeout' | 'Survived' | 'NoCoverage' | 'Ignored' | 'CompileError'
  readonly mutatorName: string
  readonly replacement: string
  readonly location: { readonly start: { readonly line: number; readonly column: number } }
}

interface Report {
  readonly files: Readonly<Record<string, { source: string; mutants: readonly Mutant[] }>>
}

const own = process.argv.slice(2)
const report = await mutated(own.length > 0 ? own : files)
const text = pageOf(report)
if (own.length > 0) console.log(text)
else writeFileSync(join(import.meta.dirname, 'results.md'), text)

/** Runs Stryker in a worktree: it finds packages by links, which lead out of the copies that it makes itself. */
async function mutated(mutate: readonly string[]): Promise<Report> {
  using folder = temporaryFolder('mutation')
  const cwd = join(folder.path, 'tree')
  await run('git', ['worktree', 'add', '--detach', cwd, 'HEAD'], { cwd: root })
  try {
    await run('npm', ['ci'], { cwd, timeoutMs: hours })
    await run('npm', ['install', '--no-save', ...tools], { cwd, timeoutMs: hours })
    const output = join(folder.path, 'report.json')
    const options = {
      ...{ mutate, testRunner: 'vitest', inPlace: true, tempDirName: join(folder.path, 'backup') },
      vitest: { configFile: 'test/mutation/vitest.config.ts', related: false },
      plugins: ['@stryker-mutator/vitest-runner'],
      ...{ coverageAnalysis: 'perTest', ignoreStatic: true, disableTypeChecks: false },
      ...{ timeoutMS: 6_000, reporters: ['json'], jsonReporter: { fileName: output } },
    }
    writeFileSync(join(cwd, 'stryker.config.json'), JSON.stringify(options))
    await run('npx', ['stryker', 'run'], { cwd, timeoutMs: 4 * hours })
    return JSON.parse(readFileSync(output, 'utf8'))
  } finally {
    await run('git', ['worktree', 'remove', '--force', cwd], { cwd: root })
  }
}

function pageOf({ files }: Report): string {
  const of = (mutants: readonly Mutant[], ...statuses: readonly Mutant['status'][]) =>
    mutants.filter(({ status }) => statuses.includes(status))
  const row = (name: string, mutants: readonly Mutant[]) => {
    const [found, missed] = [
      of(mutants, 'Killed', 'Timeout'),
      of(mutants, 'Survived', 'NoCoverage'),
    ]
    const all = found.length + missed.length
    return `| ${name} | ${all} | ${found.length} | ${((100 * found.length) / all).toFixed(1)}% |`
  }
  const entries = Object.entries(files)
  const survivors = entries.map(([name, { source, mutants }]) => {
    const lines = source.split('\n')
    const each = of(mutants, 'Survived', 'NoCoverage').map(({ location, replacement }) => {
      const { line, column } = location.start
      const place = lines[line - 1]?.slice(column - 1, column + 60).trim()
      return `- ${line}: \`${place}\` → \`${replacement.replace(/\s+/g, ' ').slice(0, 80)}\``
    })
    return each.length === 0 ? '' : `\n### ${name}\n\n${each.join('\n')}\n`
  })
  return [
    '# Mistakes that the tests notice\n',
    'Written by `npm run mutation`.\n',
    '| file | mistakes | noticed | share |\n| --- | --- | --- | --- |',
    ...entries.map(([name, { mutants }]) => row(name, mutants)),
    row(
      '**all**',
      entries.flatMap(([, { mutants }]) => mutants),
    ),
    '\n## Not noticed',
    ...survivors,
  ].join('\n')
}
