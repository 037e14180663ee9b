import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'

/** Reads a file of the report's page, compressed. The build replaces this file with them. */
export function readPage(name: string): Uint8Array {
  return gzipSync(readFileSync(new URL(`../page/${name}`, import.meta.url)), { level: 9 })
}
