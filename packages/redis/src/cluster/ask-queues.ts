import { endsWithin } from '@sluice/core'
import { type CallQueue, longestUnderWayMs, storeClosed } from '../calls/call-queue.ts'
import { hashTagOf } from '../keys/hash-tags.ts'
import type { QueuedRequest } from '../model/queued-request.ts'
import { applyByShard } from './shards.ts'

type AskQueues = Pick<CallQueue, 'isClosed' | 'submit' | 'close'>

/**
 * On a Cluster, all keys of a call must be in one slot. So each hash tag has its own queue, created
 * by the first ask that needs it. An ask whose keys have several hash tags is decided tag by tag.
 */
export function queueByHashTag(open: () => CallQueue): AskQueues {
  const queues = new Map<string, CallQueue>()
  /** Asks with several hash tags: each asks again after its first answer. */
  const underWay = new Set<Promise<unknown>>()
  let isClosed = false

  function add(ask: QueuedRequest): void {
    const tag = hashTagOf(ask.keys[0] ?? '')
    const queue = queues.get(tag) ?? open()
    queues.set(tag, queue)
    queue.submit(ask)
  }

  return {
    get isClosed() {
      return isClosed
    },
    submit(ask) {
      if (isClosed) return ask.fail(storeClosed())
      if (ask.keys.length === 1 || new Set(ask.keys.map(hashTagOf)).size < 2) return add(ask)
      const settled = applyByShard(ask, hashTagOf, add)
        .then(
          (outcomes) => ask.settle(outcomes),
          (error: unknown) => ask.fail(error),
        )
        .finally(() => underWay.delete(settled))
      underWay.add(settled)
    },
    async close() {
      isClosed = true
      await endsWithin(Promise.all(underWay), longestUnderWayMs)
      await Promise.all([...queues.values()].map((queue) => queue.close()))
    },
  }
}
