import { processWide } from '../runtime/process-wide.ts'
import { onOneLine } from './options.ts'

declare const console: { warn(message: string): void }

const warned = processWide('@sluice/core/warned/1', () => new Set<string>())

/**
 * Writes a warning that the user should see once; every runtime has `console.warn`.
 * @param topic a text that two warnings of one kind share, for messages that can differ without end
 */
export function warnOnce(message: string, topic: string = message): void {
  if (warned.has(topic)) return
  warned.add(topic)
  warn(message)
}

/** Writes a warning each time. The caller sees to it that a fault that lasts is not repeated. */
export function warn(message: string): void {
  console.warn(`sluice: ${onOneLine(message)}`)
}

/** Version of this package. The build writes it; the sources have none. */
declare const SLUICE_VERSION: string | undefined

/** The package and version that this process made something of first. */
const first = processWide('@sluice/core/release/1', () => ({
  known: undefined as { readonly name: string; readonly version: string } | undefined,
}))

/**
 * Notes that a package made something, and warns once if another one of another release did. All
 * packages depend on exactly the core of their release, so its version is theirs.
 */
export function noteRelease(name: string): void {
  const version = typeof SLUICE_VERSION === 'string' ? SLUICE_VERSION : undefined
  if (version === undefined) return
  const { known } = first
  if (known === undefined) first.known = { name, version }
  else if (known.version !== version) {
    warnOnce(
      `${known.name} ${known.version} and ${name} ${version} have different versions, and may misread the data that they share: ` +
        'give all packages of @sluice one version in package.json, and see npm ls @sluice/core for the package that brings each version',
      'mixed releases',
    )
  }
}
