import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { findOrInstall } from '../support/programs.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { root } from '../support/workspace.ts'
import { evidencePage, type Part, parts, type Result } from './parts.ts'

// `npm run evidence`: runs the tests of each part, adds up the figures that they note, and writes results.json and docs/evidence.md.

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: Object.keys(parts) },
    long: { type: 'boolean', default: false },
    times: { type: 'string' },
    seed: { type: 'string', default: `${Math.floor(Math.random() * 2 ** 31)}` },
    path: { type: 'string', default: '' },
    test: { type: 'string', default: '' },
  },
})
const larger = Number(values.times ?? (values.long ? 10 : 1))
if (!(larger > 0)) throw new TypeError(`--times must be a number above 0, but is ${values.times}`)
const seed = Number(values.seed)
const resultsFile = join(root, 'test/evidence/results.json')
const histories = join(root, 'test/evidence/histories')
const results: Record<string, Result> = JSON.parse(readFileSync(resultsFile, 'utf8'))

for (const name of values.only) {
  const part = parts[name]
  const known = Object.keys(parts).join(', ')
  if (!part) throw new TypeError(`--only must be one of ${known}, but is ${name}`)
  rmSync(histories, { recursive: true, force: true })
  const before = performance.now()
  const { figures, failures } = await runTests(part)
  const seconds = Math.round((performance.now() - before) / 1_000)
  const date = new Date().toISOString().slice(0, 10)
  console.log(`${failures.length === 0 ? 'ok' : 'not ok'} ${name} ${JSON.stringify(figures)}`)
  for (const failure of failures) console.log(failure)
  if (failures.length > 0) process.exitCode = 1
  // A repeated failure is no result.
  if (values.path === '' && values.test === '') {
    results[name] = { date, seed, seconds, failures: failures.length, figures }
  }
}

writeFileSync(resultsFile, `${JSON.stringify(results, null, 2)}\n`)
const redis = execFileSync(findOrInstall('redis'), ['--version'], { encoding: 'utf8' })
const machine = `${cpus().length} × ${cpus()[0]?.model.trim()}, Node ${process.versions.node}, Redis ${/v=(\S+)/.exec(redis)?.[1]}`
const page = join(root, 'docs/evidence.md')
writeFileSync(page, evidencePage(readFileSync(page, 'utf8'), results, machine))

interface Assertion {
  readonly fullName: string
  readonly status: string
  readonly failureMessages: readonly string[]
  readonly meta: { readonly figures?: Readonly<Record<string, number>> }
}

async function runTests({ files, project = 'proofs', times = 1 }: Part) {
  using folder = temporaryFolder('evidence')
  const output = join(folder.path, 'results.json')
  const vitest = join(root, 'node_modules/vitest/vitest.mjs')
  const args = ['run', '--config', 'test/vitest.config.ts', '--project', project]
  const reporters = ['--reporter=dot', '--reporter=json', `--outputFile.json=${output}`]
  const named = values.test === '' ? [] : ['-t', values.test]
  const child = spawn(process.execPath, [vitest, ...args, ...reporters, ...named, ...files], {
    ...{ cwd: root, stdio: ['ignore', 'inherit', 'inherit'] },
    env: {
      ...process.env,
      EVIDENCE_SEED: `${seed}`,
      EVIDENCE_PATH: values.path,
      EVIDENCE_TIMES: `${times * larger}`,
      EVIDENCE_HISTORIES: histories,
    },
  })
  const [code] = await once(child, 'exit')
  const figures: Record<string, number> = {}
  const failures: string[] = []
  if (!existsSync(output)) return { figures, failures: ['vitest wrote no results'] }
  const { testResults } = JSON.parse(readFileSync(output, 'utf8'))
  for (const { assertionResults, message, status } of testResults) {
    const tests: readonly Assertion[] = assertionResults
    if (status === 'failed' && tests.length === 0) failures.push(message)
    for (const { fullName, status, failureMessages, meta } of tests) {
      if (status === 'failed') failures.push(`${fullName}\n${failureMessages.join('\n')}`)
      if (status !== 'passed') continue
      for (const [name, size] of Object.entries(meta.figures ?? {})) {
        figures[name] = (figures[name] ?? 0) + size
      }
    }
  }
  if (code !== 0 && failures.length === 0) failures.push(`vitest ended with ${code}`)
  return { figures, failures }
}
