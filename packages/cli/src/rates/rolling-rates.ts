/** The windows in which rates are counted: 1 s, 10 s, 1 min and 1 h. */
export const rateWindowsMs: readonly number[] = [1_000, 10_000, 60_000, 3_600_000]

const windows = rateWindowsMs.length
/** The numbers of a client: requests in each window, the maximum of each, and all requests. */
const rowLength = 2 * windows + 1
const allRequests = 2 * windows
const rowsPerBlock = 16_384
const requestsPerPart = 16_384
const maxDistanceMs = 2 ** 32 - 1

/** Some requests of a log, in order. Freed once the longest window has passed it. */
class Part {
  readonly clients = new Uint32Array(requestsPerPart)
  /** Times (ms) after `beginMs`. */
  readonly times = new Uint32Array(requestsPerPart)
  readonly beginMs: number
  length = 0
  next: Part | undefined

  constructor(beginMs: number) {
    this.beginMs = beginMs
  }

  hasRoomFor(timeMs: number): boolean {
    return this.length < requestsPerPart && timeMs - this.beginMs <= maxDistanceMs
  }
}

/** The oldest request that is still in a window. */
interface Tail {
  part: Part
  place: number
}

/**
 * The maximum number of requests of each client in any window of 1 s, 10 s, 1 min and 1 h, exact to
 * the millisecond. Needs 36 bytes per client, and 8 bytes per request of the last hour.
 */
export class RollingRates {
  /** Rows of numbers by client, in blocks that are not copied when clients are added. */
  readonly #blocks: Uint32Array[] = []
  #last: Part | undefined
  #tails: readonly Tail[] = []

  /**
   * Counts a request.
   * @param client an integer; clients are numbered from 0
   * @param timeMs not before the last request
   */
  add(client: number, timeMs: number): void {
    const last = this.#partFor(timeMs)
    last.clients[last.length] = client
    last.times[last.length] = timeMs - last.beginMs
    last.length += 1
    const block = this.#blockOf(client)
    const row = rowOf(client)
    for (let window = 0; window < windows; window += 1) {
      this.#leave(window, timeMs)
      const requests = (block[row + window] ?? 0) + 1
      block[row + window] = requests
      const most = row + windows + window
      if (requests > (block[most] ?? 0)) block[most] = requests
    }
    block[row + allRequests] = (block[row + allRequests] ?? 0) + 1
  }

  requestsOf(client: number): number {
    return this.#blockOf(client)[rowOf(client) + allRequests] ?? 0
  }

  /** Returns the maximum number of requests of a client, by window index. */
  rateOf(client: number, window: number): number {
    return this.#blockOf(client)[rowOf(client) + windows + window] ?? 0
  }

  /** Removes the requests that have left a window. */
  #leave(window: number, timeMs: number): void {
    const tail = this.#tails[window]
    if (!tail) return
    const beforeMs = timeMs - (rateWindowsMs[window] ?? 0)
    for (;;) {
      const { part, place } = tail
      if (place === part.length) {
        // The request that was added last is in every window.
        if (!part.next) return
        tail.part = part.next
        tail.place = 0
        continue
      }
      if (part.beginMs + (part.times[place] ?? 0) > beforeMs) return
      const client = part.clients[place] ?? 0
      const block = this.#blockOf(client)
      const count = rowOf(client) + window
      block[count] = (block[count] ?? 0) - 1
      tail.place = place + 1
    }
  }

  #partFor(timeMs: number): Part {
    if (this.#last?.hasRoomFor(timeMs)) return this.#last
    const part = new Part(timeMs)
    if (this.#last) this.#last.next = part
    else this.#tails = rateWindowsMs.map(() => ({ part, place: 0 }))
    this.#last = part
    return part
  }

  #blockOf(client: number): Uint32Array {
    const index = Math.floor(client / rowsPerBlock)
    const known = this.#blocks[index]
    if (known) return known
    const block = new Uint32Array(rowsPerBlock * rowLength)
    this.#blocks[index] = block
    return block
  }
}

function rowOf(client: number): number {
  return (client % rowsPerBlock) * rowLength
}
