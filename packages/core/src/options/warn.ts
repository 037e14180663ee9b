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
