import { type Stats, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { errorText } from '@sluice/core'
import { CliError, exitCodes } from './exit-codes.ts'

/** Runs a file operation. @throws CliError that names the file if it fails */
export async function withFile<T>(
  file: string,
  what: 'read' | 'written',
  act: () => Promise<T>,
): Promise<T> {
  try {
    return await act()
  } catch (cause) {
    throw new CliError(`${file} cannot be ${what}: ${errorText(cause)}`, exitCodes.usage, { cause })
  }
}

export function textOf(file: string): Promise<string> {
  return withFile(file, 'read', () => readFile(file, 'utf8'))
}

/**
 * Checks the output files of a command before it reads anything.
 * @param outputs by option
 * @throws CliError if one is also read, is written twice, or would be overwritten unintentionally
 */
export function checkOutputs(
  outputs: Readonly<Record<string, string | undefined>>,
  inputs: readonly string[],
  { force = false }: { readonly force?: boolean },
): void {
  const read = inputs.map((file) => ({ file, stats: statsOf(file) }))
  const written = new Set<string>()
  for (const [option, file] of Object.entries(outputs)) {
    if (file === undefined) continue
    if (written.has(file))
      throw new CliError(`${option} ${file} is already an output; choose another`)
    written.add(file)
    const stats = statsOf(file)
    if (stats && read.some((input) => input.stats && isSame(input.stats, stats))) {
      throw new CliError(`${option} ${file} would overwrite an input file; choose another`)
    }
    if (stats?.isFile() && !force) {
      throw new CliError(`${file} already exists; --force overwrites it`)
    }
  }
}

function statsOf(file: string): Stats | undefined {
  return statSync(file, { throwIfNoEntry: false })
}

/** Links and different spellings of a path are the same file. */
function isSame(one: Stats, other: Stats): boolean {
  return one.ino === other.ino && one.dev === other.dev
}
