import { join } from 'node:path'
import { run } from '../support/run.ts'
import { root } from '../support/workspace.ts'
import { packAll, type Tarball } from './tarballs.ts'

const waiting = await packAll()
await Promise.all([checkWaiting(), checkWaiting()])

async function checkWaiting(): Promise<void> {
  for (let next = waiting.shift(); next; next = waiting.shift()) {
    const problems = await problemsOf(next)
    console.log(`${next.name}: ${problems.length === 0 ? 'ok' : `not ok\n${problems.join('\n')}`}`)
    if (problems.length > 0) process.exitCode = 1
  }
}

/** Asks publint whether a package is published well, and attw whether its types resolve in every module system. */
async function problemsOf({ path }: Tarball): Promise<string[]> {
  const verdicts = await Promise.allSettled([
    runTool('publint', ['run', path, '--strict']),
    runTool('attw', [path, '--format', 'ascii', '--no-color', '--no-emoji']),
  ])
  return verdicts.flatMap((verdict) =>
    verdict.status === 'rejected' ? [String(verdict.reason.message)] : [],
  )
}

function runTool(name: string, args: readonly string[]): Promise<string> {
  return run(join(root, 'node_modules/.bin', name), args, { cwd: root })
}
