import { setTimeout as sleep } from 'node:timers/promises'
import { createFetch, type Fetch } from '@sluice/client'

/** A way to call an API until it answers: a client of what sends the requests. */
export type Contender = { readonly name: string; clientOf(send: Fetch): Fetch }

/** Clients that come back until they are served, whatever it takes. */
const patience = { retries: 1000, maxWaitMs: 120_000, maxTotalWaitMs: 120_000 }

export const contenders: readonly Contender[] = [
  {
    name: 'retry every 100 ms',
    clientOf: (send) => retrying(send, () => 100),
  },
  {
    name: 'retry exactly when told',
    clientOf: (send) =>
      retrying(send, (response) => Number(response.headers.get('Retry-After')) * 1000),
  },
  {
    name: '@sluice/client, 200 processes',
    // As good as processes of their own: what is sent by another function is shared with no other.
    clientOf: (send) => createFetch({ ...patience, fetch: (...call) => send(...call) }),
  },
  {
    name: '@sluice/client, one process',
    clientOf: (send) => createFetch({ ...patience, fetch: send }),
  },
  {
    name: '@sluice/client, one process, pace',
    clientOf: (send) => createFetch({ ...patience, fetch: send, pace: true }),
  },
]

/** What is written by hand, and what most retry libraries do: wait the same as everybody else, and try again. */
function retrying(send: Fetch, waitMs: (response: Response) => number): Fetch {
  return async (input, init) => {
    for (;;) {
      const response = await send(input, init)
      if (response.status !== 429) return response
      await response.body?.cancel()
      await sleep(waitMs(response))
    }
  }
}
