import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, vi } from 'vitest'
import { expandTabs } from '../../docs/.vitepress/tabs/expand-tabs.ts'
import { readText, root } from '../support/workspace.ts'

export interface PageModule {
  readonly heading: string
  readonly code: string
}

export function pageModules(page: string): readonly PageModule[] {
  return sections(readText(page)).flatMap(({ heading, blocks: [code] }) =>
    code === undefined ? [] : [{ heading, code }],
  )
}

/** The blocks of a page that stand in tabs, by their heading and the title of their tab. */
export function tabModules(page: string): readonly PageModule[] {
  return sections(expandTabs(readText(page)), /^```ts \[(.*?)\]\n(.*?)^```/gms).flatMap(
    ({ heading, titles, blocks }) =>
      blocks.map((code, index) => ({ heading: `${heading} > ${titles[index]}`, code })),
  )
}

/** The blocks of TypeScript under a heading, by the path of the file that the first line names. */
export function pageFiles(page: string, heading: string): ReadonlyMap<string, string> {
  const found = sections(readText(page)).find((section) => section.heading === heading)
  return new Map(
    found?.blocks.map((code) => [/^\/\/ (\S+)\n/.exec(code)?.[1] ?? '', code] as const),
  )
}

function sections(markdown: string, block = /^```ts()\n(.*?)^```/gms) {
  return markdown
    .split(/^## /m)
    .slice(1)
    .map((section) => {
      const found = [...section.matchAll(block)]
      return {
        heading: section.slice(0, section.indexOf('\n')),
        titles: found.map(([, title = '']) => title),
        blocks: found.map(([, , code = '']) => code),
      }
    })
}

/** Writes modules to files in the folder of the tests, where their imports resolve as a user's do. */
export async function writeModules(modules: readonly PageModule[]) {
  const folder = await mkdtemp(join(root, 'test/examples/.page-'))
  const pathOf = (heading: string) => join(folder, `${slug(heading)}.ts`)
  for (const { heading, code } of modules) await writeFile(pathOf(heading), code)
  // As applications of Nest have it.
  const compilerOptions = { experimentalDecorators: true }
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions }))
  return { folder, pathOf, remove: () => rm(folder, { recursive: true }) }
}

/** Writes modules for the tests of a file, each of which begins at the moment of the contract's vectors. */
export function tryModules(modules: readonly PageModule[]) {
  const tried = new Set<string>()
  let written: Awaited<ReturnType<typeof writeModules>>
  beforeAll(async () => {
    written = await writeModules(modules)
    return () => written.remove()
  })
  beforeEach(() => {
    vi.resetModules()
    vi.useFakeTimers({ toFake: ['Date'], now: 1_795_195_800_250 })
    return () => vi.useRealTimers()
  })
  afterAll(() => vi.resetModules())
  function pathOf(heading: string): string {
    tried.add(heading)
    return written.pathOf(heading)
  }
  return {
    /** The headings of those that were tried. */
    tried: tried as ReadonlySet<string>,
    get folder() {
      return written.folder
    },
    /** The file of a module that something else runs. */
    pathOf,
    /** Loads the module under a heading, made anew. */
    async load<Exports>(heading: string): Promise<Exports> {
      return await import(/* @vite-ignore */ pathOf(heading))
    },
  }
}

function slug(heading: string): string {
  return heading.toLowerCase().replace(/[^a-z]+/g, '-')
}
