import { GateKeeper } from '../gates/gate-keeper.ts'
import { isBusyNow, remember } from '../gates/remember.ts'
import type { Call, Fetch } from '../messages/call.ts'
import { processWide } from '../process-wide.ts'

/** Says which calls are of one key. */
type KeyFunction = (call: Call) => string | undefined

/**
 * What all clients of a process were told: by what sends their requests, since another function may lead to another server
 * (in tests it does), and by the function that makes the keys, since its words are its own.
 */
const registry = processWide(
  '@sluice/client/keepers/1',
  () => new WeakMap<Fetch, WeakMap<KeyFunction, Map<string, GateKeeper>>>(),
)

interface Keeping {
  readonly send: Fetch
  readonly key: KeyFunction
  readonly pace: boolean
}

export function keeperOf(call: Call, { send, key, pace }: Keeping): GateKeeper {
  const id = key(call)
  if (id === undefined) return new GateKeeper({ pace })
  const keepers = keepersOf(send, key)
  const pacedId = `${pace ? 'paced' : 'free'} ${id}`
  const keeper = keepers.get(pacedId) ?? new GateKeeper({ pace })
  remember(keepers, { id: pacedId, value: keeper, isKept: isBusyNow })
  return keeper
}

function keepersOf(send: Fetch, key: KeyFunction): Map<string, GateKeeper> {
  const bySender = registry.get(send) ?? new WeakMap<KeyFunction, Map<string, GateKeeper>>()
  registry.set(send, bySender)
  const keepers = bySender.get(key) ?? new Map<string, GateKeeper>()
  bySender.set(key, keepers)
  return keepers
}
