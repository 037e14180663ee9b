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
const page = join(import.meta.dirname, 'results.md')
const text = pageOf(report)
if (own.length > 0) console.log(text)
else writeFileSync(page, text)

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
      // Only loops without end take as long: a busy machine must not notice a mistake.
      ...{ timeoutMS: 60_000, reporters: ['json'], jsonReporter: { fileName: output } },
    }
    writeFileSync(join(cwd, 'stryker.config.json'), JSON.stringify(options))
    await run('npx', ['stryker', 'run'], { cwd, timeoutMs: 4 * hours })
    return JSON.parse(readFileSync(output, 'utf8'))
  } finally {
    await run('git', ['worktree', 'remove', '--force', cwd], { cwd: root })
  }
}

/** The report as Markdown. What stands there of why mistakes of a function live stays. */
function pageOf({ files }: Report): string {
  const of = (mutants: readonly Mutant[], ...statuses: readonly Mutant['status'][]) =>
    mutants.filter(({ status }) => statuses.includes(status))
  const row = (name: string, mutants: readonly Mutant[]) => {
    const found = of(mutants, 'Killed', 'Timeout').length
    const all = found + of(mutants, 'Survived', 'NoCoverage').length
    return `| ${name} | ${all} | ${found} | ${((100 * found) / all).toFixed(1)}% |`
  }
  const kept = readFileSync(page, 'utf8').matchAll(/^#### (.+)\n\n([A-Z].*)/gm)
  const reasons = new Map(Array.from(kept, ([, place, why]) => [place, why]))
  const entries = Object.entries(files)
  const survivors = entries.flatMap(([name, { source, mutants }]) => {
    const lines = source.split('\n')
    const alive = of(mutants, 'Survived', 'NoCoverage')
    alive.sort((one, other) => one.location.start.line - other.location.start.line)
    const places = new Map<string, Mutant[]>()
    for (const mutant of alive) {
      const place = placeOf(lines, mutant.location.start.line)
      places.set(place, [...(places.get(place) ?? []), mutant])
    }
    return [...places].map(([place, some]) => {
      const heading = `${name.replace('packages/', '')}: ${place}`
      const each = some.map(({ location, replacement }) => {
        const { line, column } = location.start
        const text = lines[line - 1]?.slice(column - 1, column + 60).trim()
        return `- ${line}: \`${text}\` → \`${replacement.replace(/\s+/g, ' ').slice(0, 80)}\``
      })
      return [
        `\n#### ${heading}\n`,
        `${reasons.get(heading) ?? 'Not looked into.'}\n`,
        ...each,
      ].join('\n')
    })
  })
  return [
    '# Mistakes that the tests notice\n',
    'Written by `npm run mutation`; why a mistake is not noticed, by hand.\n',
    '| file | mistakes | noticed | share |\n| --- | --- | --- | --- |',
    ...entries.map(([name, { mutants }]) => row(name, mutants)),
    row(
      '**all**',
      entries.flatMap(([, { mutants }]) => mutants),
    ),
    '\n## Not noticed',
    ...survivors,
    '',
  ].join('\n')
}

/** The function that a line stands in. */
function placeOf(lines: readonly string[], line: number): string {
  const declared = /^ {0,4}(?:export |async |function |const |get |class )*(#?\w+)(?:[(<:]| =).*/
  for (let at = line; at > 0; at -= 1) {
    const [text, name] = declared.exec(lines[at - 1] ?? '') ?? []
    if (
      text &&
      name &&
      !/^(?:if|for|while|return|switch|catch)$/.test(name) &&
      /[{>([]$/.test(text)
    )
      return name
  }
  return 'the module'
}
