import type { Rig, ServerFault, SteppedClock } from './fault.ts'

const hourMs = 3_600_000

/**
 * Clocks that are set. Ours is `Date.now` of the APIs' processes, which is replaced. That of the store stands behind its option `clock`, since
 * Redis asks the machine for the time and the machine is not ours to set.
 */
export const clockFaults: readonly ServerFault[] = [
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
