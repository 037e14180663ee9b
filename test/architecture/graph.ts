import { posix } from 'node:path'
import { parseSync } from 'oxc-parser'
import { filesUnder, readText } from '../support/workspace.ts'

/** Each source file of a package, with the files of the package that it imports. Imports of types alone count. */
export type Graph = ReadonlyMap<string, readonly string[]>

/** The modules that a source names, those of types too. A computed name stands as it is written. */
export function importsOf(file: string, text: string = readText(file)): readonly string[] {
  const { staticImports, staticExports } = parseSync(file, text).module
  const requests = [...staticImports, ...staticExports.flatMap(({ entries }) => entries)]
  const called = [...text.matchAll(/\bimport\(([^)]+)\)/g)].map(([, name = '']) => name)
  return [
    ...requests.flatMap(({ moduleRequest }) => moduleRequest?.value ?? []),
    ...called.map((name) => name.replaceAll("'", '')),
  ]
}

export function graphOf(folder: string): Graph {
  const files = filesUnder(`${folder}/src`, '.ts')
  return new Map(
    files.map((file) => {
      const targets = importsOf(file)
        .filter((specifier) => specifier.startsWith('.'))
        .map((specifier) => posix.join(posix.dirname(file), specifier))
      return [file, [...new Set(targets)]]
    }),
  )
}

/** A way from each file that is part of a circle back to itself, one for each circle that a search comes upon. */
export function circlesIn(graph: Graph): string[] {
  const circles: string[] = []
  const done = new Set<string>()
  const way: string[] = []
  const visit = (file: string): void => {
    const at = way.indexOf(file)
    if (at !== -1) circles.push([...way.slice(at), file].join(' → '))
    if (at !== -1 || done.has(file)) return
    way.push(file)
    for (const target of graph.get(file) ?? []) visit(target)
    way.pop()
    done.add(file)
  }
  for (const file of graph.keys()) visit(file)
  return circles
}

/** Short files that one other file alone imports: they belong into that file. */
export function crumbsIn(graph: Graph, linesOf: (file: string) => number): string[] {
  const maxLines = 25
  return [...graph.keys()].filter((file) => {
    const importers = [...graph].filter(([, targets]) => targets.includes(file))
    return importers.length === 1 && linesOf(file) < maxLines
  })
}

/** The folders of a package, each with the folders that its files import. Entries import from wherever they list, and count for none. */
export function foldersOf(graph: Graph, entries: readonly string[]): Graph {
  const folders = new Map<string, string[]>()
  for (const [file, targets] of graph) {
    if (entries.includes(file)) continue
    const folder = posix.dirname(file)
    const others = targets.map((target) => posix.dirname(target)).filter((each) => each !== folder)
    folders.set(folder, [...new Set([...(folders.get(folder) ?? []), ...others])])
  }
  return folders
}
