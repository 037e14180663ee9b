import { type Call, readCall } from './call.ts'
import { type ClientOptions, readOptions } from './client-options.ts'
import { GateKeeper, remember } from './gate-keeper.ts'
import { Session } from './session.ts'

export type Fetch = typeof globalThis.fetch

/** How many keys are remembered. */
const maxKeys = 1000

/**
 * A `fetch` that waits as it is told, and sends again what may be sent again. Calls through one such `fetch` share what
 * they are told. It answers what the last try was answered, refusals included, and rejects only where `fetch` would.
 *
 * @example
 * const fetch = createFetch()
 * const response = await fetch('https://api.example.com/items')
 */
export function createFetch(options: ClientOptions = {}): Fetch {
  const settings = readOptions(options)
  const keepers = new Map<string, GateKeeper>()

  function keeperOf(call: Call): GateKeeper {
    const id = settings.key(call)
    if (id === undefined) return new GateKeeper(settings)
    const keeper = keepers.get(id) ?? new GateKeeper(settings)
    remember(keepers, { id, value: keeper, max: maxKeys })
    return keeper
  }

  return async function patientFetch(input, init) {
    const call = readCall(input, init)
    return new Session({ call, settings, keeper: keeperOf(call) }).run()
  }
}
