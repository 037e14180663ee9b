import { hash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { basename, join, relative } from 'node:path'
import { run } from '../support/run.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { root } from '../support/workspace.ts'
import { packAll } from './tarballs.ts'

// Builds and packs the commit that is checked out once more, in a clone in another folder, and compares the bytes of all tarballs.

using home = temporaryFolder('clone')
const clone = join(home.path, 'somewhere-else')
const tarballs = await packAll()
await run('git', ['clone', '--quiet', root, clone], { cwd: home.path })
const options = { cwd: clone, timeoutMs: 900_000 }
await run('npm', ['ci', '--prefer-offline'], options)
const pack = "import('./test/packages/tarballs.ts').then(({ packAll }) => packAll())"
await run(process.execPath, ['--import', 'tsx', '--eval', pack], options)
for (const { path } of tarballs) {
  const digests = await Promise.all([digestOf(path), digestOf(join(clone, relative(root, path)))])
  const isSame = new Set(digests).size === 1
  console.log(`${basename(path)} ${digests[0]} ${isSame ? 'ok' : `not ok: ${digests[1]}`}`)
  if (!isSame) process.exitCode = 1
}

async function digestOf(path: string): Promise<string> {
  return hash('sha256', await readFile(path))
}
