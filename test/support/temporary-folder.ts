import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A new folder that is removed with all that is in it when its owner lets go of it. */
export function temporaryFolder(name: string, parent: string = tmpdir()) {
  const path = realpathSync(mkdtempSync(join(parent, `sluice-${name}-`)))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}
