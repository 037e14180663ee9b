import type { LineFields } from './log-request.ts'

/** A way to read lines of one file. */
export interface LogFormat {
  readonly name: string
  readonly encoding: 'latin1' | 'utf8'
  /** The moment that a line's time refers to. */
  readonly timeIs: 'start' | 'end'
  /**
   * Reads a line.
   * @returns `undefined` for a line that is not a request, such as a comment; a string if the line
   * cannot be read
   */
  read(line: string): LineFields | string | undefined
}

/** Copies a latin1 slice of the log, so that it does not keep the log in memory. */
export function detached(text: string): string {
  // In a browser, the page keeps the log.
  if (typeof Buffer === 'undefined') return text
  return Buffer.from(text, 'latin1').toString('latin1')
}

const method = /^[A-Z][A-Z-]{1,31}$/

export function isMethod(text: string): boolean {
  return text === 'GET' || text === 'POST' || method.test(text)
}

/** Parses a status; 0 if there is none. */
export function statusOf(text: string | undefined): number {
  return text !== undefined && /^[1-9]\d\d$/.test(text) ? Number(text) : 0
}

/** Returns the address of `192.0.2.1:443`, `[2001:db8::1]:443`, or an address without a port. */
export function withoutPort(text: string): string {
  if (text.startsWith('[')) {
    const end = text.indexOf(']')
    return end === -1 ? text : text.slice(1, end)
  }
  const colon = text.indexOf(':')
  // Several colons mean IPv6.
  return colon === -1 || text.includes(':', colon + 1) ? text : text.slice(0, colon)
}

/** Returns a value of a log that writes `-` for a missing one. */
export function present(text: string | undefined): string | undefined {
  return text === undefined || text === '-' || text === '' ? undefined : text
}
