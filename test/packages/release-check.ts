import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { installNodes } from '../support/newer-nodes.ts'
import { run } from '../support/run.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { type Consumer, installConsumer, programs, runProgram } from './consumer.ts'
import { registryTools, startRegistry } from './registry.ts'
import { packAll } from './tarballs.ts'
import { proveTools, tools } from './tools.ts'

const MAJORS = [22, 24]

// Publishes all packages to a registry on this machine, and uses them in an empty project that installs them from there: in Jest, with
// older settings of TypeScript, and by each module system on newer versions of Node. The proofs in tarballs.proof.ts run the programs
// on this one.

using home = temporaryFolder('nodes')
const folder = await subfolder('binaries')
const { packages, overrides } = registryTools
const [tarballs, binaries] = await Promise.all([
  packAll(),
  installNodes(folder, MAJORS, packages, overrides),
])
await using registry = await startRegistry(folder, binaries[0] ?? '', tarballs)
const consumer = await installConsumer(await subfolder('consumer'), tools, registry.url)
for (const problem of await proveTools(consumer)) {
  console.log(problem)
  process.exitCode = 1
}
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

async function subfolder(name: string): Promise<string> {
  const path = join(home.path, name)
  await mkdir(path)
  return path
}
