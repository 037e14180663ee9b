import { type Stats, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { errorText } from '@sluice/core'
import { CliError, exitCodes } from './exit-codes.ts'

/** Does something with a file. @throws CliError that names the file when it cannot be done */
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
 * Looks at the files that a command is to write, before it reads anything.
 * @param outputs by the options that name them
 * @throws CliError when one of them is read too, is written twice, or would be replaced unasked
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
    if (written.has(file)) throw new CliError(`${option} ${file} is written already; name another`)
    written.add(file)
    const stats = statsOf(file)
    if (stats && read.some((input) => input.stats && isSame(input.stats, stats))) {
      throw new CliError(`${option} ${file} would replace a file that is read; name another`)
    }
    if (stats?.isFile() && !force) {
      throw new CliError(`${file} is there already; --force replaces it`)
    }
  }
}

function statsOf(file: string): Stats | undefined {
  return statSync(file, { throwIfNoEntry: false })
}

/** Links, and several spellings of a path, are one file. */
function isSame(one: Stats, other: Stats): boolean {
  return one.ino === other.ino && one.dev === other.dev
}
