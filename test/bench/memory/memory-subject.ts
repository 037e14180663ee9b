import type { MaybePromise } from '@sluice/core'
import type { Contender } from '../harness/rounds.ts'
import type { Quota } from '../subjects/algorithm-policy.ts'

export interface MemorySubject {
  check(key: string): MaybePromise<boolean>
  close?(): void
}

export interface MemorySetting extends Quota {
  readonly traffic: 'allowed' | 'denied'
  readonly keys: number
}

export interface MemoryContender extends Contender {
  open(setting: MemorySetting): MemorySubject
  /** How units come when a key is filled; nothing for those whose keys look the same after one. */
  readonly fill?: 'spread' | 'at once'
  /** Whether every unit is recorded singly, so that a key grows until it is full. */
  readonly recordsUnits?: boolean
}
