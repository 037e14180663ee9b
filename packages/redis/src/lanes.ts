import type { Outcome } from '@sluice/core'
import { type Batcher, storeClosed } from './batcher.ts'
import type { Row } from './row-groups.ts'
import { applyByShard } from './shards.ts'
import { tagOf } from './tags.ts'

/** Rows that travel together. */
type Lane = Batcher<Row, readonly Outcome[]>

/** The ways on which rows travel to Redis. */
export interface Lanes {
  readonly isClosed: boolean
  apply(row: Row): Promise<readonly Outcome[]>
  /** Takes no more rows, and settles those it has. */
  close(): Promise<void>
}

/** For one server: all rows share their calls. */
export function oneLane(open: () => Lane): Lanes {
  const lane = open()
  return {
    get isClosed() {
      return lane.isClosed
    },
    apply: (row) => lane.add(row),
    close: () => lane.close(),
  }
}

/**
 * For a Cluster: the keys of a call have to live in one slot, so there is a lane for each tag, opened by the first row that needs it. A row whose keys carry
 * several tags is decided tag by tag.
 */
export function laneByTag(open: () => Lane): Lanes {
  const lanes = new Map<string, Lane>()
  /** Rows of several tags: each of them has more to ask when its first answer comes. */
  const underWay = new Set<Promise<unknown>>()
  let isClosed = false

  function add(row: Row): Promise<readonly Outcome[]> {
    const tag = tagOf(row.keys[0] ?? '')
    const lane = lanes.get(tag) ?? open()
    lanes.set(tag, lane)
    return lane.add(row)
  }

  function applyToSeveral(row: Row): Promise<readonly Outcome[]> {
    const outcomes = applyByShard(row, tagOf, add)
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
    apply(row) {
      if (isClosed) return Promise.reject(storeClosed())
      return hasOneTag(row) ? add(row) : applyToSeveral(row)
    },
    async close() {
      isClosed = true
      await Promise.all(underWay)
      await Promise.all([...lanes.values()].map((lane) => lane.close()))
    },
  }
}

function hasOneTag({ keys }: Row): boolean {
  const [first = ''] = keys
  return keys.length === 1 || keys.every((key) => tagOf(key) === tagOf(first))
}
