import type { Ask } from '@sluice/core'
import { type CallQueue, storeClosed, withinSecond } from '../calls/call-queue.ts'
import { applyByShard } from './shards.ts'
import { tagOf } from './tags.ts'

/** The ways on which asks travel to Redis. */
export interface Lanes {
  readonly isClosed: boolean
  submit(ask: Ask): void
  /** Takes no more asks, and settles those it has. */
  close(): Promise<void>
}

/** For one server: all asks share their calls. */
export function oneLane(open: () => CallQueue): Lanes {
  const lane = open()
  return {
    get isClosed() {
      return lane.isClosed
    },
    submit: (ask) => lane.add(ask),
    close: () => lane.close(),
  }
}

/**
 * For a Cluster: the keys of a call have to live in one slot, so there is a lane for each tag, opened by the first ask that needs it. An ask whose keys carry
 * several tags is decided tag by tag.
 */
export function laneByTag(open: () => CallQueue): Lanes {
  const lanes = new Map<string, CallQueue>()
  /** Asks of several tags: each of them has more to ask when its first answer comes. */
  const underWay = new Set<Promise<unknown>>()
  let isClosed = false

  function add(ask: Ask): void {
    const tag = tagOf(ask.keys[0] ?? '')
    const lane = lanes.get(tag) ?? open()
    lanes.set(tag, lane)
    lane.add(ask)
  }

  function applyToSeveral(ask: Ask): void {
    const settled = applyByShard(ask, tagOf, add)
      .then(
        (outcomes) => ask.settle(outcomes),
        (error: unknown) => ask.fail(error),
      )
      .finally(() => underWay.delete(settled))
    underWay.add(settled)
  }

  return {
    get isClosed() {
      return isClosed
    },
    submit(ask) {
      if (isClosed) ask.fail(storeClosed())
      else if (hasOneTag(ask.keys)) add(ask)
      else applyToSeveral(ask)
    },
    async close() {
      isClosed = true
      await withinSecond(Promise.all(underWay))
      await Promise.all([...lanes.values()].map((lane) => lane.close()))
    },
  }
}

function hasOneTag(keys: readonly string[]): boolean {
  const [first = ''] = keys
  return keys.length === 1 || keys.every((key) => tagOf(key) === tagOf(first))
}
