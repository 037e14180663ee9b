import { type Fetch, readCall } from './calls/call.ts'
import { type ClientOptions, readOptions } from './options.ts'
import { Session } from './session.ts'
import { registryOf } from './throttle/registry.ts'

/**
 * Creates a `fetch` that obeys the waits of servers, and repeats requests that may be repeated. All
 * calls of a process share the waits and limits that servers tell. It resolves to the last answer,
 * refusals included, and rejects only where `fetch` would.
 *
 * @example
 * const fetch = createFetch()
 * const response = await fetch('https://api.example.com/items')
 */
export function createFetch(options: ClientOptions = {}): Fetch {
  const settings = readOptions(options)
  return async function patientFetch(input, init) {
    const call = readCall(input, init)
    const send = settings.fetch ?? globalThis.fetch
    const registry = registryOf(call, { ...settings, send })
    return new Session({ call, settings, registry, send }).run()
  }
}
