import { createReadStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { errorText } from '@sluice/core'
import { CliError, exitCodes } from '../terminal/exit-codes.ts'

/** Maximum bytes of a line. Longer text is not a log line. */
const maxLineBytes = 1_000_000
const newline = 10
const carriageReturn = 13

export function fileStream(file: string): AsyncIterable<Buffer> {
  return createReadStream(file, { highWaterMark: 256 * 1024 })
}

/**
 * Reads whole lines: pieces of a file that end at a line end. Decompresses gzip, recognised by its
 * first bytes, whatever the file name.
 * @param onBytes receives the number of bytes read, compressed or not
 * @throws CliError if the file cannot be read to the end
 */
export async function* wholeLines(
  file: string,
  source: AsyncIterable<Buffer>,
  onBytes: (bytes: number) => void,
): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0)
  try {
    for await (const chunk of unpacked(counted(source, onBytes))) {
      const end = chunk.lastIndexOf(newline) + 1
      if (end > 0) {
        const lines = chunk.subarray(0, end)
        yield rest.length === 0 ? lines : Buffer.concat([rest, lines])
      }
      const left = chunk.subarray(end)
      rest = end > 0 || rest.length === 0 ? left : Buffer.concat([rest, left])
      if (rest.length > maxLineBytes) rest = rest.subarray(0, maxLineBytes)
    }
  } catch (cause) {
    throw new CliError(`${file} cannot be read: ${errorText(cause)}`, exitCodes.usage, { cause })
  }
  if (rest.length > 0) yield rest
}

async function* counted(
  source: AsyncIterable<Buffer>,
  onBytes: (bytes: number) => void,
): AsyncGenerator<Buffer> {
  for await (const chunk of source) {
    onBytes(chunk.length)
    yield chunk
  }
}

async function* unpacked(source: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  const first = await source.next()
  if (first.done) return
  const whole = (async function* () {
    yield first.value
    yield* source
  })()
  if (first.value[0] !== 0x1f || first.value[1] !== 0x8b) {
    yield* whole
    return
  }
  const gunzip = createGunzip({ chunkSize: 256 * 1024 })
  // Its errors are thrown by the iteration below.
  pipeline(Readable.from(whole, { objectMode: false }), gunzip).catch(() => undefined)
  yield* gunzip
}

/**
 * Calls back with each line of a piece, without its end. A line is a slice of the piece, so
 * anything kept must be copied (`detached`).
 */
export function eachLine(
  piece: Buffer,
  encoding: 'latin1' | 'utf8',
  onLine: (line: string) => void,
): void {
  const text = piece.toString(encoding)
  let from = 0
  while (from < text.length) {
    const at = text.indexOf('\n', from)
    const end = at === -1 ? text.length : at
    const to = end > from && text.charCodeAt(end - 1) === carriageReturn ? end - 1 : end
    onLine(text.slice(from, to))
    from = end + 1
  }
}
