import type { ServerFault } from './fault.ts'
import { repeatedly } from './timing.ts'

/** What happens on the way to the server. */
export const networkFaults: readonly ServerFault[] = [
  {
    name: '2 s latency',
    store: 'gone',
    inflict({ proxy }) {
      proxy.disturb({ requestDelayMs: 1_000, replyDelayMs: 1_000 })
      return () => proxy.disturb({})
    },
  },
  {
    name: 'replies cut mid-way',
    store: 'flaky',
    inflict({ proxy }) {
      proxy.disturb({ cutEvery: 12 })
      return () => proxy.disturb({})
    },
  },
  {
    name: 'every 10th reply stalled',
    store: 'flaky',
    inflict({ proxy }) {
      proxy.disturb({ stall: { every: 10, forMs: 400 } })
      return () => proxy.disturb({})
    },
  },
  {
    name: 'connection reset storm',
    store: 'flaky',
    inflict: ({ proxy }) => repeatedly(50, () => proxy.reset()),
  },
  {
    name: 'unreachable (all connections refused)',
    store: 'gone',
    async inflict({ proxy }) {
      await proxy.refuse()
      return () => proxy.accept()
    },
  },
  {
    name: 'half of the fleet cut off',
    store: 'flaky',
    splitsFleet: true,
    // What Redis counts is within the limit, and so is what the others admit within their shares.
    admits: 1.5,
    events: ['open', 'reconciled'],
    async inflict({ proxy }) {
      await proxy.refuse()
      return () => proxy.accept()
    },
  },
]
