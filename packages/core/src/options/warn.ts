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
  console.warn(`sluice: ${onOneLine(message)}`)
}
