import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** A folder that the tests of a file share. It is removed when they are over. */
export function testFiles(name: string) {
  const folder = temporaryFolder(name)
  afterAll(() => folder[Symbol.dispose]())
  const at = (file: string): string => join(folder.path, file)
  return {
    folder: folder.path,
    at,
    /** Writes a file. @returns its path */
    write(file: string, content: string | Buffer): string {
      writeFileSync(at(file), content)
      return at(file)
    },
  }
}
