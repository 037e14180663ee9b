import { stat } from 'node:fs/promises'
import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { durationMs } from '@sluice/core'
import { chooseFormat, type FormatOptions } from '../formats/choose-format.ts'
import { LogRequest } from '../formats/log-request.ts'
import type { LogReport, UnreadableLine } from '../report/simulation-report.ts'
import { withFile } from '../terminal/files.ts'
import { Progress } from '../terminal/progress.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { behindProxies, type ClientAddress } from './proxies.ts'
import { eachLine, fileStream, wholeLines } from './read-lines.ts'
import { TimeOrder } from './time-order.ts'

/** Options of commands that read logs, as commander passes them. */
export interface LogOptions extends FormatOptions {
  readonly trustProxy?: string
  /** Time by which lines may be out of order. */
  readonly orderWindow: string
  readonly strict?: boolean
}

const maxExamples = 5
const maxExampleLength = 200
/** End (ms) of the year 9999: a later time is an error in the log. */
const maxTimeMs = 253_402_300_799_999
/** A longer request (ms) is an error in the log: its lease would be renewed all the time. */
const maxDurationMs = 30 * 86_400_000
/** Number of lines for detecting the format. */
const sampleLines = 100
/** A heap below this size may double before garbage is collected, which costs less. */
const largeHeapBytes = 128 * 1024 * 1024
/** Growth (percent) of a large heap between collections: less memory, more CPU. */
const heapGrowthPercent = 20

/** The requests of one file, a piece at a time. */
interface Source {
  readonly pieces: AsyncGenerator<readonly LogRequest[]>
  requests: readonly LogRequest[]
  next: number
}

/** Reads logs once, as requests sorted by time, and counts lines. */
export class LogReader {
  readonly #stdin: Terminal['stdin']
  readonly #files: readonly string[]
  readonly #options: LogOptions
  readonly #order: TimeOrder
  readonly #clientAddress: ClientAddress | undefined
  readonly #progress: Progress
  readonly #formats = new Set<string>()
  readonly #examples: UnreadableLine[] = []
  readonly #seen = { lines: 0, requests: 0, fromMs: 0, toMs: 0 }
  #unreadable = 0
  #readBytes = 0
  #allBytes: number | undefined
  #isHeapLarge = false

  constructor(terminal: Terminal, files: readonly string[], options: LogOptions) {
    const { orderWindow, trustProxy } = options
    this.#stdin = terminal.stdin
    this.#files = files
    this.#options = options
    this.#order = new TimeOrder(durationMs(orderWindow, '--order-window'))
    this.#clientAddress = trustProxy === undefined ? undefined : behindProxies(trustProxy)
    this.#progress = new Progress(terminal)
  }

  get report(): LogReport {
    return {
      files: this.#files,
      format: [...this.#formats].join(', '),
      ...this.#seen,
      unreadable: { lines: this.#unreadable, examples: this.#examples },
      late: this.#order.late,
    }
  }

  /**
   * Reads all files, merged by time.
   * @throws CliError if a file cannot be read, or its format is unknown
   */
  async *read(): AsyncGenerator<readonly LogRequest[]> {
    this.#allBytes = await sizeOf(this.#files)
    const sources = this.#files.map((file): Source => {
      return { pieces: this.#pieces(file), requests: [], next: 0 }
    })
    const [only] = sources
    const pieces = sources.length === 1 && only ? only.pieces : merged(sources)
    try {
      for await (const piece of pieces) {
        this.#boundHeap()
        for (const request of piece) this.#order.add(request)
        yield* this.#timed(this.#order.take())
      }
    } finally {
      this.#progress.end()
    }
    yield* this.#timed(this.#order.takeAll())
  }

  /** Makes V8 collect a large heap sooner, since a log may have a million clients. */
  #boundHeap(): void {
    if (this.#isHeapLarge || getHeapStatistics().used_heap_size < largeHeapBytes) return
    this.#isHeapLarge = true
    setFlagsFromString(`--heap-growing-percent=${heapGrowthPercent}`)
  }

  *#timed(requests: readonly LogRequest[]): Generator<readonly LogRequest[]> {
    const [first] = requests
    if (!first) return
    if (this.#seen.requests === 0) this.#seen.fromMs = first.startMs
    this.#seen.requests += requests.length
    this.#seen.toMs = requests.at(-1)?.startMs ?? this.#seen.toMs
    yield requests
  }

  async *#pieces(file: string): AsyncGenerator<readonly LogRequest[]> {
    const bytes = file === '-' ? this.#stdin : fileStream(file)
    const pieces = wholeLines(file, bytes, (read) => {
      this.#readBytes += read
      this.#progress.show(this.#readBytes, this.#allBytes)
    })
    let format: ReturnType<typeof chooseFormat> | undefined
    let number = 0
    for await (const piece of pieces) {
      format ??= chooseFormat(this.#options, sampleOf(piece))
      this.#formats.add(format.name)
      const { read, encoding, timeIs } = format
      const requests: LogRequest[] = []
      eachLine(piece, encoding, (line) => {
        number += 1
        this.#seen.lines += 1
        if (line === '') return
        const fields = read(line)
        if (typeof fields === 'string')
          this.#note({ file, line: number, text: line, reason: fields })
        if (typeof fields !== 'object') return
        const { timeMs, durationMs = 0 } = fields
        const startMs = timeIs === 'end' ? timeMs - durationMs : timeMs
        if (!(startMs >= 0 && startMs <= maxTimeMs && durationMs <= maxDurationMs)) {
          const reason = 'it must start between 1970 and 9999, and take at most 30 days'
          this.#note({ file, line: number, text: line, reason })
          return
        }
        const request = new LogRequest(fields, startMs)
        if (this.#clientAddress) request.ip = this.#clientAddress(request)
        requests.push(request)
      })
      yield requests
    }
  }

  #note(example: UnreadableLine): void {
    this.#unreadable += 1
    if (this.#examples.length >= maxExamples) return
    this.#examples.push({ ...example, text: example.text.slice(0, maxExampleLength) })
  }
}

/** Merges sources whose requests are roughly in order, by time. */
async function* merged(sources: readonly Source[]): AsyncGenerator<readonly LogRequest[]> {
  const open = [...sources]
  for (const source of [...open]) await refill(source, open)
  while (open.length > 0) {
    const piece: LogRequest[] = []
    // A source without a piece is read first: its next request may be the next of all.
    for (let source = earliest(open); source; source = earliest(open)) {
      const request = source.requests[source.next]
      if (request) piece.push(request)
      source.next += 1
      if (source.next >= source.requests.length) {
        await refill(source, open)
        break
      }
    }
    yield piece
  }
}

async function refill(source: Source, open: Source[]): Promise<void> {
  source.next = 0
  source.requests = []
  while (source.requests.length === 0) {
    const { done, value } = await source.pieces.next()
    if (done) {
      open.splice(open.indexOf(source), 1)
      return
    }
    source.requests = value
  }
}

function earliest(sources: readonly Source[]): Source | undefined {
  let found: Source | undefined
  let foundMs = Number.POSITIVE_INFINITY
  for (const source of sources) {
    const startMs = source.requests[source.next]?.startMs ?? Number.POSITIVE_INFINITY
    if (startMs < foundMs) {
      found = source
      foundMs = startMs
    }
  }
  return found
}

function sampleOf(piece: Buffer): readonly string[] {
  const lines: string[] = []
  // The start is enough, since a piece may be long.
  eachLine(piece.subarray(0, 64 * 1024), 'latin1', (line) => lines.push(line))
  return lines.slice(0, sampleLines).filter((line) => line !== '')
}

/** Bytes of all files; `undefined` if one is not a file. */
async function sizeOf(files: readonly string[]): Promise<number | undefined> {
  let bytes = 0
  for (const file of files) {
    if (file === '-') return undefined
    bytes += (await withFile(file, 'read', () => stat(file))).size
  }
  return bytes
}
