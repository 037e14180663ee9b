import type { Ask, Outcome } from '@sluice/core'
import { type CallQueue, storeClosed, withinSecond } from '../calls/call-queue.ts'
import { PromisedAsk } from '../calls/promised-ask.ts'
import type { Row } from '../calls/row.ts'
import { applyByShard } from './shards.ts'
import { tagOf } from './tags.ts'

/** The ways on which requests travel to Redis. */
export interface Lanes {
  readonly isClosed: boolean
  submit(ask: Ask): void
  /** The same for a caller that waits for a promise. */
  apply(row: Row): Promise<readonly Outcome[]>
  /** Takes no more requests, and settles those it has. */
  close(): Promise<void>
}

/** For one server: all requests share their calls. */
export function oneLane(open: () => CallQueue): Lanes {
  const lane = open()
  return {
    get isClosed() {
      return lane.isClosed
    },
    submit: (ask) => lane.add(ask),
    apply: (row) => promised(row, (ask) => lane.add(ask)),
    close: () => lane.close(),
  }
}

/**
 * For a Cluster: the keys of a call have to live in one slot, so there is a lane for each tag, opened by the first row that needs it. A row whose keys carry
 * several tags is decided tag by tag.
 */
export function laneByTag(open: () => CallQueue): Lanes {
  const lanes = new Map<string, CallQueue>()
  /** Rows of several tags: each of them has more to ask when its first answer comes. */
  const underWay = new Set<Promise<unknown>>()
  let isClosed = false

  function add(ask: Ask): void {
    const tag = tagOf(ask.keys[0] ?? '')
    const lane = lanes.get(tag) ?? open()
    lanes.set(tag, lane)
    lane.add(ask)
  }

  function applyToSeveral(row: Row): Promise<readonly Outcome[]> {
    const outcomes = applyByShard(row, tagOf, (part) => promised(part, add))
    const settled = outcomes.then(done, done)
    underWay.add(settled)
    function done(): void {
      underWay.delete(settled)
    }
    return outcomes
  }

  return {
    get isClosed() {
      return isClosed
    },
    submit(ask) {
      if (isClosed) ask.fail(storeClosed())
      else if (hasOneTag(ask.keys)) add(ask)
      else
        applyToSeveral(rowOf(ask)).then(
          (outcomes) => ask.settle(outcomes),
          (error: unknown) => ask.fail(error),
        )
    },
    apply(row) {
      if (isClosed) return Promise.reject(storeClosed())
      return hasOneTag(row.keys) ? promised(row, add) : applyToSeveral(row)
    },
    async close() {
      isClosed = true
      await withinSecond(Promise.all(underWay))
      await Promise.all([...lanes.values()].map((lane) => lane.close()))
    },
  }
}

function promised(row: Row, add: (ask: Ask) => void): Promise<readonly Outcome[]> {
  const ask = new PromisedAsk(row)
  add(ask)
  return ask.outcomes
}

/** The request itself is the cancellation: whoever waits for it may be answered otherwise. */
function rowOf(ask: Ask): Row {
  return { op: ask.op, checks: ask.checks, keys: ask.keys, cancellation: ask }
}

function hasOneTag(keys: readonly string[]): boolean {
  const [first = ''] = keys
  return keys.length === 1 || keys.every((key) => tagOf(key) === tagOf(first))
}
