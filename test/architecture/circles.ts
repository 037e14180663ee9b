import { posix } from 'node:path'
import { filesUnder, readText } from '../support/workspace.ts'
import { findImports } from './find-imports.ts'

/** Each group of files that import each other in a circle, types included. */
export function circlesIn(folder: string): string[][] {
  const imports = new Map(
    filesUnder(folder, '.ts').map((file) => [file, relativeImports(file, readText(file))]),
  )
  return circles(imports)
}

/** @param imports the files that each file imports */
export function circles(imports: ReadonlyMap<string, readonly string[]>): string[][] {
  const found: string[][] = []
  const seen = new Set<string>()
  for (const file of imports.keys()) {
    if (seen.has(file)) continue
    const reached = reachedFrom(file, imports)
    if (!reached.has(file)) continue
    const circle = [...reached].filter((other) => reachedFrom(other, imports).has(file))
    for (const member of circle) seen.add(member)
    found.push(circle.sort())
  }
  return found
}

function reachedFrom(
  file: string,
  imports: ReadonlyMap<string, readonly string[]>,
): ReadonlySet<string> {
  const reached = new Set<string>()
  const open = [file]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const target of imports.get(next) ?? []) {
      if (reached.has(target)) continue
      reached.add(target)
      open.push(target)
    }
  }
  return reached
}

function relativeImports(file: string, source: string): string[] {
  return findImports(file, source)
    .map(({ specifier }) => specifier)
    .filter((specifier) => specifier.startsWith('.'))
    .map((specifier) => posix.join(posix.dirname(file), specifier))
}
