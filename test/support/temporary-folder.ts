import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface TemporaryFolder extends Disposable {
  readonly path: string
}

/** A new folder that is removed with all that is in it when its owner lets go of it. */
export function temporaryFolder(name: string, parent: string = tmpdir()): TemporaryFolder {
  const path = realpathSync(mkdtempSync(join(parent, `sluice-${name}-`)))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}
