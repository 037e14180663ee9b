import type { Fault, Rig, ServerFault, SteppedClock } from './fault.ts'
import type { TcpProxy } from './tcp-proxy.ts'
import { repeatedly } from './timing.ts'
import { topologyFaults } from './topology-faults.ts'

async function stop(rig: Rig) {
  await rig.server.stop()
  return () => rig.restart()
}

async function kill(rig: Rig) {
  await rig.server.kill()
  return () => rig.restart()
}

const serverFaults: readonly ServerFault[] = [
  {
    ...{ name: 'refused from boot on', store: 'gone', beforeBoot: true, losesData: true },
    inflict: stop,
  },
  { name: 'refused while running', store: 'gone', losesData: true, inflict: stop },
  {
    ...{ name: 'frozen (SIGSTOP)', store: 'gone', lastsMs: 30_000 },
    inflict({ server }) {
      server.pause()
      return () => server.resume()
    },
  },
  { name: 'killed, back empty', store: 'gone', losesData: true, inflict: kill },
  { name: 'killed, back with its data', store: 'gone', isPersistent: true, inflict: kill },
]

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

const networkFaults: readonly ServerFault[] = [
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

const commandFaults: readonly ServerFault[] = [
  {
    name: 'CLIENT KILL',
    store: 'flaky',
    inflict: ({ server }) => repeatedly(100, () => server.cli('CLIENT', 'KILL', 'TYPE', 'normal')),
  },
  {
    name: 'SCRIPT FLUSH under load',
    store: 'works',
    inflict: ({ server }) => repeatedly(20, () => server.cli('SCRIPT', 'FLUSH', 'SYNC')),
  },
  {
    name: 'maxmemory reached (noeviction)',
    store: 'gone',
    async inflict({ server }) {
      await server.cli('CONFIG', 'SET', 'maxmemory-policy', 'noeviction')
      await server.cli('CONFIG', 'SET', 'maxmemory', '1')
      return () => server.cli('CONFIG', 'SET', 'maxmemory', '0')
    },
  },
]

const hourMs = 3_600_000

/**
 * Clocks that are set. Ours is `Date.now` of the APIs' processes, which is replaced. That of the store stands behind its option `clock`, since
 * Redis asks the machine for the time and the machine is not ours to set.
 */
const clockFaults: readonly ServerFault[] = [
  { name: 'our clock 1 h ahead', ...stepped('ours', hourMs), events: ['clock-skew'] },
  { name: 'our clock 1 h behind', ...stepped('ours', -hourMs), events: ['clock-skew'] },
  // A window has passed, by the only clock there is: the jump admits one more.
  { name: "the store's clock 1 h ahead", ...stepped('store', hourMs), admits: 2 },
  // It stays behind: to come back would be a jump ahead, which is the case above.
  {
    name: "the store's clock 1 h behind",
    ...stepped('store', -hourMs),
    async inflict(rig) {
      await rig.stepClock('store', -hourMs)
      return () => undefined
    },
  },
]

function stepped(clock: SteppedClock, byMs: number) {
  return {
    store: 'works',
    ownClock: clock === 'store',
    async inflict(rig: Rig) {
      await rig.stepClock(clock, byMs)
      return () => rig.stepClock(clock, -byMs)
    },
  } as const satisfies Omit<ServerFault, 'name'>
}

/** All faults that can be made on one machine. */
export const faults: readonly Fault[] = [
  ...serverFaults,
  ...networkFaults,
  ...commandFaults,
  ...clockFaults,
  ...topologyFaults,
]

const underGrants = [
  'refused while running',
  'replies cut mid-way',
  'connection reset storm',
  'killed, back empty',
]

/**
 * The faults that are also run with `prefetch`, by fleets of one: the processes of a larger fleet get too few requests of
 * the busy key for a grant.
 */
export const faultsUnderGrants: readonly Fault[] = faults.filter(({ name }) =>
  underGrants.includes(name),
)
