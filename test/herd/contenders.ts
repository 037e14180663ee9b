import { setTimeout as sleep } from 'node:timers/promises'
import { createFetch, type Fetch } from '@sluice/client'

/** A way to call an API until it answers. */
export interface Contender {
  readonly name: string
  /** What a client calls with; the same function may be handed to all clients. */
  clientOf(send: Fetch): () => Fetch
}

/** Clients that come back until they are served, whatever it takes. */
const patience = { retries: 1000, maxWaitMs: 120_000, maxTotalWaitMs: 120_000 }

export const contenders: readonly Contender[] = [
  {
    name: 'retry every 100 ms',
    clientOf: (send) => () => retrying(send, () => 100),
  },
  {
    name: 'retry exactly when told',
    clientOf: (send) => () =>
      retrying(send, (response) => Number(response.headers.get('Retry-After')) * 1000),
  },
  {
    name: '@sluice/client, one for each',
    clientOf: (send) => () => createFetch({ ...patience, fetch: send }),
  },
  {
    name: '@sluice/client, shared',
    clientOf: (send) => {
      const shared = createFetch({ ...patience, fetch: send })
      return () => shared
    },
  },
  {
    name: '@sluice/client, shared, pace',
    clientOf: (send) => {
      const shared = createFetch({ ...patience, fetch: send, pace: true })
      return () => shared
    },
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
