import { processWide } from '../runtime/process-wide.ts'
import { onOneLine } from './options.ts'

declare const console: { warn(message: string): void }

const warned = processWide('@sluice/core/warned/1', () => new Set<string>())

/**
 * Writes a warning that the user should see once; every runtime has `console.warn`.
 * @param topic a string shared by warnings of the same kind, for messages with unlimited variants
 */
export function warnOnce(message: string, topic: string = message): void {
  if (warned.has(topic)) return
  warned.add(topic)
  warn(message)
}

/** Writes a warning each time. The caller ensures that a lasting fault does not repeat it. */
export function warn(message: string): void {
  console.warn(`sluice: ${onOneLine(message)}`)
}

/** Version of this package, inserted by the build; the sources have none. */
declare const SLUICE_VERSION: string | undefined

/** The first package and version used in this process. */
const first = processWide('@sluice/core/release/1', () => ({
  known: undefined as { readonly name: string; readonly version: string } | undefined,
}))

/**
 * Records that a package was used, and warns once if another release was used before. Every package
 * depends on exactly the core of its release, so its version is the core's.
 */
export function noteRelease(name: string): void {
  const version = typeof SLUICE_VERSION === 'string' ? SLUICE_VERSION : undefined
  if (version === undefined) return
  const { known } = first
  if (known === undefined) first.known = { name, version }
  else if (known.version !== version) {
    warnOnce(
      `${known.name} ${known.version} and ${name} ${version} have different versions, and may misread shared data: ` +
        'use the same version of all @sluice packages in package.json; npm ls @sluice/core shows where each version comes from',
      'mixed releases',
    )
  }
}
