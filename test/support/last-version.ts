import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { root } from './workspace.ts'

/** The version before this one: its processes still run while a fleet is deployed anew. */
const commit = '944cf1d421789edb3fd65807131976cbf9c04978'

/** The folder of the packages of the last version; `undefined` in a copy without its history. */
export function lastVersion(): string | undefined {
  const known = spawnSync('git', ['-C', root, 'cat-file', '-e', `${commit}^{commit}`])
  if (known.status !== 0) return undefined
  const folder = `${root}test/node_modules/.cache/sluice/${commit}`
  mkdirSync(folder, { recursive: true })
  const archive = ['-C', root, 'archive', commit, 'packages/core', 'packages/redis']
  execFileSync('tar', ['-x', '-C', folder], {
    input: execFileSync('git', archive, { maxBuffer: 2 ** 26 }),
  })
  return `${folder}/packages`
}
