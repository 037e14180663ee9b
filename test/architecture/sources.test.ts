import { parseSync } from 'oxc-parser'
import { describe, expect, it } from 'vitest'
import { filesUnder, packages, readText } from '../support/workspace.ts'

/** A longer file may hold two ideas: a reader looks, no test fails. */
const MANY_LINES = 300
const MAX_COLUMNS = 100

describe('source files', () => {
  warnOfLongFiles()

  it.each(packages())('open no docstring with a clause: $folder', ({ folder }) => {
    const clause = /((What|Who|Where|When|Which|How)(ever)?|Whom|Whether|Whose|Those|Also)\b.*/
    // The first line of a comment: a sentence that goes on may have such a word anywhere.
    const openings = [
      [sourcesOf(folder), new RegExp(`/\\*\\*\\s+(\\* )?${clause.source}`, 'g')],
      [filesUnder(folder, '.lua'), new RegExp(`(?<!^ *--.*\n) *-- ${clause.source}`, 'gm')],
    ] as const
    const found = openings.flatMap(([files, opening]) =>
      files.flatMap((file) => [...readText(file).matchAll(opening)]),
    )
    expect(found.map(([text]) => text)).toEqual([])
  })

  it.each(packages())(`have comments of at most ${MAX_COLUMNS} columns: $folder`, ({ folder }) => {
    const comment = /^ *(\/\*\*|\* |\/\/|--).*$/gm
    const found = [
      ...sourcesOf(folder),
      // The scripts of the queue are headed by tables of keys and arguments.
      ...(folder === 'packages/redis' ? filesUnder(folder, '.lua') : []),
    ].flatMap((file) => [...readText(file).matchAll(comment)])
    expect(found.map(([text]) => text).filter(({ length }) => length > MAX_COLUMNS)).toEqual([])
  })

  it.each(packages())('are listed by an index of named re-exports: $folder', ({ folder }) => {
    const file = `${folder}/src/index.ts`
    expect(otherThanReExports(file, readText(file))).toEqual([])
  })
})

it('other statements than named re-exports are found', () => {
  const fine = `
    export { consume, plugin as default } from './a.ts'
    export type { Options } from './b.ts'
    export {}
    export * from '@sluice/http/exports'`
  expect(otherThanReExports('index.ts', fine)).toEqual([])
  const others = [
    ...[`export * from './a.ts'`, `export * as all from '@sluice/http/exports'`],
    ...['export const a = 1', 'export default function () {}', `import { a } from './a.ts'`],
    ...['console.log(1)', 'const b = 1', 'export { b }'],
  ]
  expect(otherThanReExports('index.ts', others.join('\n'))).toEqual(others)
})

function otherThanReExports(fileName: string, source: string): string[] {
  const { program } = parseSync(fileName, source)
  return program.body
    .filter((statement) => {
      // What every adapter exports is listed once, by the kit.
      if (statement.type === 'ExportAllDeclaration') {
        return (
          statement.exported !== null ||
          !/^(@sluice\/http|\.\/adapter)\/exports(\.ts)?$/.test(statement.source.value)
        )
      }
      if (statement.type !== 'ExportNamedDeclaration') return true
      // `export {}` is how an empty file says that it is a module.
      const isEmpty = statement.specifiers.length === 0 && statement.declaration === null
      return statement.source === null && !isEmpty
    })
    .map((statement) => source.slice(statement.start, statement.end))
}

function sourcesOf(folder: string): string[] {
  return ['.ts', '.tsx'].flatMap((extension) => filesUnder(`${folder}/src`, extension))
}

function warnOfLongFiles(): void {
  const files = ['packages', 'examples'].flatMap((folder) =>
    ['.ts', '.tsx', '.lua'].flatMap((extension) => filesUnder(folder, extension)),
  )
  for (const file of files) {
    const lines = readText(file).trimEnd().split('\n').length
    if (lines > MANY_LINES) console.warn(`${file} has ${lines} lines: does it hold two ideas?`)
  }
}
