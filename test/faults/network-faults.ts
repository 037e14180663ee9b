import type { Rig, ServerFault } from './fault.ts'
import type { TcpProxy } from './tcp-proxy.ts'
import { repeatedly } from './timing.ts'

const disturb =
  (disturbance: Parameters<TcpProxy['disturb']>[0]) =>
  ({ proxy }: Rig) => {
    proxy.disturb(disturbance)
    return () => proxy.disturb({})
  }

async function refuse({ proxy }: Rig) {
  await proxy.refuse()
  return () => proxy.accept()
}

/** What happens on the way to the server. */
export const networkFaults: readonly ServerFault[] = [
  {
    ...{ name: '2 s latency', store: 'gone' },
    inflict: disturb({ requestDelayMs: 1_000, replyDelayMs: 1_000 }),
  },
  { name: 'replies cut mid-way', store: 'flaky', inflict: disturb({ cutEvery: 12 }) },
  {
    ...{ name: 'every 10th reply stalled', store: 'flaky' },
    inflict: disturb({ stall: { every: 10, forMs: 400 } }),
  },
  {
    ...{ name: 'connection reset storm', store: 'flaky' },
    inflict: ({ proxy }) => repeatedly(50, () => proxy.reset()),
  },
  { name: 'unreachable (all connections refused)', store: 'gone', inflict: refuse },
  {
    ...{ name: 'half of the fleet cut off', store: 'flaky', splitsFleet: true },
    // What Redis counts is within the limit, and so is what the others admit within their shares.
    ...{ admits: 1.5, events: ['open', 'reconciled'] },
    inflict: refuse,
  },
]
