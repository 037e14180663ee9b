import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from '../support/run.ts'
import type { Consumer } from './consumer.ts'

/** What users of CommonJS have: Jest without flags, ts-jest, and the last TypeScript that knows `node10`. */
export const tools: Record<string, string> = {
  '@types/jest': '^30.0.0',
  jest: '^30.5.0',
  'ts-jest': '^29.4.0',
  typescript: '~5.9.3',
}

const jestConfig = {
  testMatch: ['**/jest-*.{cjs,cts}'],
  moduleFileExtensions: ['js', 'cjs', 'cts', 'json', 'node'],
  transform: {
    '\\.cts$': ['ts-jest', { tsconfig: { module: 'commonjs', moduleResolution: 'node10' } }],
  },
}

interface Setting {
  readonly options: { readonly module: string; readonly moduleResolution?: string }
  readonly files: readonly string[]
}

const all = ['types.mts', 'plain.cts']
const settings: { readonly [name: string]: Setting } = {
  node10: { options: { module: 'commonjs', moduleResolution: 'node10' }, files: ['plain.cts'] },
  node16: { options: { module: 'node16' }, files: all },
  nodenext: { options: { module: 'nodenext' }, files: all },
  bundler: { options: { module: 'esnext', moduleResolution: 'bundler' }, files: ['types.mts'] },
}

/** Uses the packages with the tools of CommonJS, and resolves to what went wrong. */
export async function proveTools({ folder }: Consumer): Promise<string[]> {
  const problems = await Promise.all([jestProblems(folder), typeScriptProblems(folder)])
  return problems.flat()
}

async function jestProblems(folder: string): Promise<string[]> {
  await writeFile(join(folder, 'jest.config.json'), JSON.stringify(jestConfig))
  const bin = join(folder, 'node_modules/.bin/jest')
  return problemsOf('jest', run(bin, ['--ci'], { cwd: folder, timeoutMs: 300_000 }))
}

async function typeScriptProblems(folder: string): Promise<string[]> {
  const problems: string[] = []
  for (const [name, { options, files }] of Object.entries(settings)) {
    const project = join(folder, `tsconfig.${name}.json`)
    const compilerOptions = {
      ...{ target: 'es2023', strict: true, esModuleInterop: true, noEmit: true, types: ['node'] },
      ...{ lib: ['es2023'], skipLibCheck: false, ...options },
    }
    await writeFile(project, JSON.stringify({ compilerOptions, files }))
    const tsc = run(join(folder, 'node_modules/.bin/tsc'), ['-p', project], { cwd: folder })
    problems.push(...(await problemsOf(`typescript ${name}`, tsc)))
  }
  return problems
}

async function problemsOf(name: string, result: Promise<string>): Promise<string[]> {
  try {
    await result
    console.log(`${name}: ok`)
    return []
  } catch (error) {
    return [`${name}: not ok\n${error instanceof Error ? error.message : error}`]
  }
}
