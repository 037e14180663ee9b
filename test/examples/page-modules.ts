import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { readText, root } from '../support/workspace.ts'

/** A section of a page, and its first block of TypeScript. */
export interface PageModule {
  readonly heading: string
  readonly code: string
}

/** The sections of a page that have a block of TypeScript. */
export function pageModules(page: string): readonly PageModule[] {
  return readText(page)
    .split(/^## /m)
    .slice(1)
    .flatMap((section) => {
      const heading = section.slice(0, section.indexOf('\n'))
      const code = /^```ts\n(.*?)^```/ms.exec(section)?.[1]
      return code === undefined ? [] : [{ heading, code }]
    })
}

/** Modules written to files, in the folder of the tests, where their imports resolve as a user's do. */
export interface WrittenModules {
  readonly folder: string
  /** The path of the module under a heading. */
  pathOf(heading: string): string
  remove(): Promise<void>
}

export async function writeModules(modules: readonly PageModule[]): Promise<WrittenModules> {
  const folder = await mkdtemp(join(root, 'test/examples/.page-'))
  const pathOf = (heading: string) => join(folder, `${slug(heading)}.ts`)
  for (const { heading, code } of modules) await writeFile(pathOf(heading), code)
  return { folder, pathOf, remove: () => rm(folder, { recursive: true }) }
}

function slug(heading: string): string {
  return heading.toLowerCase().replace(/[^a-z]+/g, '-')
}
